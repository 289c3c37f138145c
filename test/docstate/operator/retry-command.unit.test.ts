import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { retryCommand } from '../../../sidecar/docstate/outcome-log.ts'

/** Returns the arguments that a shell passes to the command. */
const argsOf = (command: string): string[] => {
  const printed = command.replace('couchdb-sidecar', String.raw`printf '%s\0'`)
  return execFileSync('sh', ['-c', printed], { encoding: 'utf8' }).split('\0').slice(0, -1)
}

test('a plain id gets no quotes', () => {
  expect(retryCommand('shop', 'order:2026-11.a')).toBe('couchdb-sidecar retry shop order:2026-11.a')
})

test.each(["o'; touch /tmp/x; '", '$(id)', '`id`', 'a b', '-rf', '--all', '"', '!1', 'ä\nb'])(
  'a shell passes a special id unchanged: %j',
  (id) =>
    expect(argsOf(retryCommand('user/a(b)', id)).filter((arg) => arg !== '--')).toEqual(['retry', 'user/a(b)', id]),
)

test('a shell passes any other id unchanged', () => {
  const ids = fc.string({ minLength: 1, unit: 'grapheme' }).filter((id) => !id.includes('\0'))
  fc.assert(
    fc.property(ids, (id) => void expect(argsOf(retryCommand('shop', id)).at(-1)).toBe(id)),
    { numRuns: 50 },
  )
})
