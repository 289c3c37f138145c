/** The drawing of a state machine, and the counts of documents in its states. */
import { html } from 'hono/html'
import { expect, test } from 'vitest'
import { MachineDiagram } from '../../sidecar/operator-page/machine-diagram.tsx'
import { statesOf } from '../../sidecar/operator-page/machines.tsx'

const machine = {
  paid: { mode: 'unsafe', next: { shipped: 'sidecar', paid: 'client', error: 'sidecar' } },
  shipped: { timeout: { afterMs: 3_600_000, next: 'archived' } },
  late: { renamed: 'shipped' },
  archived: {},
  error: { next: { paid: 'client' } },
} as const
const order = { pattern: 'shop-*', type: 'order', machine }

const count = (type: string, state: string, status: string, count: number) => ({ type, state, status, count })
const database = (name: string, ...counts: readonly ReturnType<typeof count>[]) => ({
  name,
  counted: { counts, stuck: [] },
})

const databases = [
  database(
    'shop-a',
    count('order', 'paid', 'ready', 2),
    count('order', 'paid', 'parked', 1),
    count('order', 'archived', 'ready', 1000),
  ),
  database(
    'shop-b',
    count('order', 'paid', 'ready', 3),
    count('bill', 'paid', 'ready', 7),
    count('order', '<lost>', 'ready', 4),
  ),
  database('other', count('order', 'paid', 'ready', 50)),
  { name: 'shop-c', counted: undefined },
]
const states = statesOf(order, { databases }, ['shop-*', 'other'])

test('a machine adds up documents by state and marks stuck documents and undeclared states', () => {
  const received = [...states].map(([state, { counts, mark }]) => [state, counts.join(', '), mark])
  expect(received).toEqual([
    ['paid', '5 ready, 1 parked', 'bad'],
    ['archived', '1,000 at rest', undefined],
    ['<lost>', '4 at rest', 'undeclared'],
  ])
  expect(states.get('paid')!.path).toBe('/documents?db=shop-*&type=order&state=paid') // stuck documents
  expect(states.get('archived')!.path).toBe('/documents?db=shop-*&type=order&state=archived&status=ready')
})

test('a machine has a box for each state and an arrow for each step except into error, within its frame', async () => {
  const { type, pattern } = order
  const drawn = String(await html`${MachineDiagram({ type, pattern, machine, states })}`)
  expect(drawn.match(/<rect/g)).toHaveLength(6)
  const arrows = [...drawn.matchAll(/class="arrow (\w+)" d="([^"]+)"/g)]
  expect(arrows.map(([, kind]) => kind).sort()).toEqual(['renamed', 'step', 'step', 'time'])
  expect(drawn).toContain('after 1 h')
  expect(drawn).toContain('&lt;lost&gt;')
  const [left, top, width, height] = /viewBox="([^"]+)"/.exec(drawn)![1]!.split(' ').map(Number) as [
    number,
    number,
    number,
    number,
  ]
  for (const [, , path] of arrows)
    for (const [, x, y] of path!.matchAll(/[ML]([-\d.]+) ([-\d.]+)/g)) {
      expect(Number(x)).toBeGreaterThanOrEqual(left)
      expect(Number(x)).toBeLessThanOrEqual(left + width)
      expect(Number(y)).toBeGreaterThanOrEqual(top)
      expect(Number(y)).toBeLessThanOrEqual(top + height)
    }
})
