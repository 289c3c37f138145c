import { expect, test } from 'vitest'
import { endedNode } from '../../sidecar/cli/start.ts'

const on = (day: string) => Date.parse(day)

test.each([
  ['20.19.0', '2026-04-30T12:00:00Z'],
  ['22.22.0', '2026-11-25'],
  ['24.1.0', '2028-04-30'],
  ['27.0.0', '2030-01-01'],
])('Node %s gives no warning on %s', (version, day) => {
  expect(endedNode(version, on(day))).toBeUndefined()
})

test('a Node past its end of life gives a warning with the supported versions', () => {
  expect(endedNode('20.20.2', on('2026-05-01'))).toBe(
    'Node 20.20.2 has had no security fixes since 2026-04-30: run the sidecar on Node 22, 24 or 26',
  )
  expect(endedNode('21.7.3', on('2026-05-01'))).toBe(
    'Node 21.7.3 has had no security fixes: run the sidecar on Node 22, 24 or 26',
  )
  expect(endedNode('25.9.0', on('2026-11-25'))).toContain('since 2026-06-01: run the sidecar on Node 22, 24 or 26')
  expect(endedNode('26.1.0', on('2029-05-01'))).toContain('run the sidecar on Node 28 or later')
})
