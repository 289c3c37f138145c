import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { parseDuration } from '../../sidecar/core/duration.ts'
import { withTimeout } from '../../sidecar/core/timeout.ts'

const day = 86_400_000

test.each([30 * day, 100 * 365 * day, Infinity])(
  'a sleep of %d ms does not end at once, and ends with the signal',
  async (ms) => {
    const [ending, warnings] = [new AbortController(), [] as string[]]
    const onWarning = ({ name }: Error) => void warnings.push(name)
    process.on('warning', onWarning)
    const sleeping = systemClock.sleep(ms, ending.signal)
    expect(await withTimeout(systemClock, 50, sleeping)).toBe(false)
    ending.abort(new Error('the test is over'))
    await expect(sleeping).rejects.toThrow('the test is over')
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  },
)

test.each([
  ['90s', 90_000],
  ['36500d', 36_500 * day],
  ['36501d', undefined],
  ['999999999d', undefined],
  ['2 weeks', undefined],
])('the duration %s is %s ms', (text, ms) => expect(parseDuration(text)).toBe(ms))
