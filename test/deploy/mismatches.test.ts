import { expect, test } from 'vitest'
import { controlMachines } from '../../ddocs/machines.ts'
import { listMismatches } from '../../sidecar/deploy/list-mismatches.ts'

const ddoc = { _id: '_design/docstate', machines: controlMachines }

test('handlers of the declared states and modes match', () => {
  const handlers = [
    { type: 'device', state: 'new', mode: 'unsafe' },
    { type: 'confirm', state: 'clicked', mode: 'safe' },
  ] as const
  expect(listMismatches(ddoc, handlers)).toEqual([])
})

test('a handler of a type that nobody declared matches: nothing guards it', () => {
  expect(listMismatches(ddoc, [{ type: 'constructor', state: 'paid', mode: 'safe' }])).toEqual([])
  expect(listMismatches({ _id: '_design/docstate' }, [{ type: 'order', state: 'paid', mode: 'safe' }])).toEqual([])
})

test.each([
  [{ type: 'device', state: 'new', mode: 'safe' }, 'declares that state as unsafe'],
  [{ type: 'device', state: 'active', mode: 'safe' }, 'declares that state as not handled'],
  [{ type: 'device', state: 'toString', mode: 'safe' }, 'has no such state'],
] as const)('a handler that the machine does not have is named: %o', (handler, reason) => {
  const [mismatch] = listMismatches(ddoc, [handler])
  expect(mismatch).toContain(`handler for ${handler.type} in state ${handler.state}`)
  expect(mismatch).toContain(reason)
})

test('a database without the design document is named', () => {
  expect(listMismatches(undefined, [])).toEqual([expect.stringContaining('run the deploy')])
})
