import { expect, test } from 'vitest'
import { FairQueue } from '../../sidecar/databases/fair-queue.ts'

const NOW = 1000

/** Counts the turns of each kind among `among` turns, while entries of all these kinds always wait. */
function share(among: number, ...kinds: readonly ('reported' | 'found' | 'due')[]) {
  const turns = new FairQueue()
  const counts: Record<string, number> = {}
  for (let i = 0; i < among; i++) {
    if (kinds.includes('reported')) turns.addNamed(`reported ${i}`)
    if (kinds.includes('found')) turns.find(`found ${i}`)
    if (kinds.includes('due')) turns.addAt(`due ${i}`, NOW)
    turns.ripen(NOW)
    const kind = turns.take()!.split(' ')[0]!
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

test('every kind gets its turns, and databases named by an event get most of them', () => {
  expect(share(80, 'reported', 'found', 'due')).toEqual({ reported: 60, found: 10, due: 10 })
  expect(share(80, 'reported', 'found')).toEqual({ reported: 60, found: 20 })
  expect(share(80, 'reported', 'due')).toEqual({ reported: 60, due: 20 })
  expect(share(80, 'found', 'due')).toEqual({ found: 40, due: 40 })
  for (const kind of ['reported', 'found', 'due'] as const) expect(share(80, kind)).toEqual({ [kind]: 80 })
})

test('databases of one kind leave the queue in the order of arrival', () => {
  const turns = new FairQueue()
  for (const name of ['a', 'b', 'a', 'c']) turns.find(name)
  expect([turns.take(), turns.take(), turns.take(), turns.take()]).toEqual(['a', 'b', 'c', undefined])
})

test('a database that is found and then named by an event waits once', () => {
  const turns = new FairQueue()
  turns.find('a')
  turns.addNamed('a')
  expect([turns.size, turns.hasNewsOf('a'), turns.take(), turns.size]).toEqual([1, true, 'a', 0])
  expect(turns.hasNewsOf('a')).toBe(false)
})

test('the queue returns no database before its time and no removed database', () => {
  const turns = new FairQueue()
  turns.addAt('later', NOW + 1)
  for (const name of ['reported', 'found', 'due']) turns.addAt(name, NOW)
  turns.addNamed('reported')
  turns.find('found')
  for (const name of ['reported', 'found', 'due']) turns.remove(name)
  turns.ripen(NOW)
  expect([turns.take(), turns.nextAt()]).toEqual([undefined, NOW + 1])
})
