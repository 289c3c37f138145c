import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { retryCommand } from '../../../sidecar/docstate/outcome-log.ts'

/** What a shell makes of it. */
const argsOf = (command: string): string[] => {
  const printed = command.replace('couchdb-sidecar', String.raw`printf '%s\0'`)
  return execFileSync('sh', ['-c', printed], { encoding: 'utf8' }).split('\0').slice(0, -1)
}

test('a plain id needs no quotes', () => {
  expect(retryCommand('shop', 'order:2026-11.a')).toBe('couchdb-sidecar retry shop order:2026-11.a')
})

test.each(["o'; touch /tmp/x; '", '$(id)', '`id`', 'a b', '-rf', '--all', '"', '!1', 'ä\nb'])(
  'the shell hands over as it is: %j',
  (id) =>
    expect(argsOf(retryCommand('user/a(b)', id)).filter((arg) => arg !== '--')).toEqual(['retry', 'user/a(b)', id]),
)

test('and any other id', () => {
  const ids = fc.string({ minLength: 1, unit: 'grapheme' }).filter((id) => !id.includes('\0'))
  fc.assert(
    fc.property(ids, (id) => void expect(argsOf(retryCommand('shop', id)).at(-1)).toBe(id)),
    { numRuns: 50 },
  )
})
