import { expect, test } from 'vitest'
import { checkAll } from '../../sidecar/cli/start.ts'
import { ConfigError } from '../../sidecar/core/errors.ts'

const faulty = (...faults: string[]) => {
  throw new ConfigError(faults)
}

test('results come in the order of the checks', async () => {
  expect(await checkAll([() => 1, () => Promise.resolve('two')])).toEqual([1, 'two'])
})

test('the faults of all checks are reported at once', async () => {
  const checked = checkAll([() => faulty('a', 'b'), () => 1, () => Promise.resolve().then(() => faulty('c'))])
  await expect(checked).rejects.toMatchObject({ name: 'ConfigError', faults: ['a', 'b', 'c'] })
})

test('an error that is no fault of a setting is thrown unchanged', async () => {
  const broken = new TypeError('broken')
  const checked = checkAll([() => faulty('a'), () => Promise.reject(broken)])
  await expect(checked).rejects.toBe(broken)
})
