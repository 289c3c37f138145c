import { expect, test } from 'vitest'
import type { DatabaseEvent } from '../../../sidecar/global-changes/event-documents.ts'
import {
  GONE,
  eventsBetween,
  eventsToWrite,
  knownAfter,
  noteBefore,
  unsure,
  type Known,
} from '../../../sidecar/global-changes/writing/lookout.ts'

const at = (life: string, changes: number) => ({ life, changes })
/** A database state as the file of one copy reports it. */
const of = (copy: string, changes: number) => ({ ...at('1', changes), files: { [copy]: changes } })
const both = { ...at('1', 3), files: { a: 3, b: 2 } }
const uneven = { ...at('1', 6), files: { a: 3, b: 3, c: 2 } }
const nothing: Known = undefined
const some = unsure(undefined)

test.each([
  ['does not exist and is not in the ledger', nothing, nothing, []],
  ['is new and empty', nothing, at('1', 0), ['created']],
  ['is new and has changes', nothing, at('1', 3), ['created', 'updated']],
  ['is unchanged', at('1', 3), at('1', 3), []],
  ['has changed', at('1', 3), at('1', 4), ['updated']],
  ['was read from a node with a lag', of('a', 3), of('b', 2), []],
  ['has changed while another copy has a lower count', uneven, { ...at('1', 6), files: { a: 4, c: 2 } }, ['updated']],
  ['is unchanged in a copy with a higher count', uneven, { ...at('1', 6), files: { a: 3, d: 3 } }, []],
  ['is an older copy', of('a', 3), of('a', 2), ['updated']],
  ['is an older copy, without known files', at('1', 3), at('1', 2), ['updated']],
  ['is an older copy of one range', both, { ...both, files: { a: 2, b: 3 } }, ['updated']],
  ['was created again', at('1', 3), at('2', 0), ['deleted', 'created']],
  ['was created again with fewer changes', at('1', 3), at('2', 1), ['deleted', 'created', 'updated']],
  ['was deleted', at('1', 3), nothing, ['deleted']],
  ['has events that may be written already', unsure(at('1', 3)), at('1', 3), ['created', 'updated']],
  ['has events that may be written already and was deleted', unsure(at('1', 3)), nothing, ['deleted']],
  [
    'has events that may be written already and was created again',
    unsure(at('1', 3)),
    at('2', 0),
    ['deleted', 'created'],
  ],
  ['has an event from an unknown life', some, at('1', 0), ['created']],
  ['has an event from an unknown life and was deleted', some, nothing, ['deleted']],
  ['has an event from an ended life', GONE, at('1', 0), ['deleted', 'created']],
  ['has an event from an ended life and was deleted', GONE, nothing, ['deleted']],
])('a database that %s', (_, known, now, events) => {
  expect(eventsBetween(known, now)).toEqual(events)
})

const reported = (...events: DatabaseEvent[]) => new Set(events)

test.each([
  ['created', nothing, at('1', 1), reported('created'), [['created']]],
  ['updated, without a created event', nothing, at('1', 1), reported('updated'), [['created', 'updated']]],
  ['updated, for a database that _all_dbs does not list', nothing, at('0', 1), reported('updated'), [['updated']]],
  ['created, for a deleted database', nothing, nothing, reported('created'), [['created']]],
  ['updated', at('1', 1), at('1', 2), reported('updated'), [['updated']]],
  [
    'created only, for a database created again',
    at('1', 1),
    at('2', 0),
    reported('created'),
    [['deleted'], ['created']],
  ],
  [
    'deleted only, for a database created again',
    at('1', 1),
    at('2', 0),
    reported('deleted'),
    [['deleted'], ['created']],
  ],
  [
    'deleted and created within one second',
    at('1', 1),
    at('1', 0),
    reported('deleted', 'created'),
    [['deleted'], ['created']],
  ],
  [
    'updated, for a database created again',
    at('1', 1),
    at('2', 1),
    reported('updated'),
    [['deleted'], ['created', 'updated']],
  ],
  ['deleted, for an unchanged database', at('1', 1), at('1', 1), reported('deleted'), [[]]],
  ['deleted', at('1', 1), nothing, reported('deleted'), [[], ['deleted']]],
  [
    'created, updated and deleted',
    nothing,
    nothing,
    reported('deleted', 'updated', 'created'),
    [['created', 'updated'], ['deleted']],
  ],
] as const)('the feed rows become the right event documents: %s', (_, known, read, events, written) => {
  expect(eventsToWrite(known, read, events)).toEqual(written)
})

test.each([
  ['an update', at('1', 3), at('1', 5), reported('updated'), at('1', 5)],
  ['an update without a created event', nothing, at('1', 5), reported('updated'), nothing],
  ['a created event, with later changes', nothing, at('1', 5), reported('created'), at('1', 0)],
  ['a created and an updated event', nothing, at('1', 5), reported('created', 'updated'), at('1', 5)],
  ['a created event of a deleted database', nothing, nothing, reported('created'), GONE],
  ['a deleted and a created event', at('1', 3), at('2', 5), reported('deleted', 'created'), at('2', 0)],
  [
    'a deleted and a created event within one second',
    at('1', 3),
    at('1', 2),
    reported('deleted', 'created'),
    at('1', 0),
  ],
  ['an update of a deleted database', at('1', 3), nothing, reported('updated'), at('1', 3)],
  ['a deleted event', at('1', 3), nothing, reported('deleted'), nothing],
  ['nothing', at('1', 3), at('1', 3), reported(), at('1', 3)],
  ['an update read from a node with a lag', of('a', 3), of('b', 2), reported('updated'), both],
  ['an update of an older copy', of('a', 3), of('a', 2), reported('updated'), of('a', 2)],
  ['an event that may be a repetition', unsure(at('1', 3)), at('1', 3), reported('created'), at('1', 0)],
])('the ledger is right after writing: %s', (_, known, read, events, after) => {
  expect(knownAfter(known, read, events)).toEqual(after)
})

test.each([
  ['a created event of an unknown database', nothing, at('1', 3), reported('created'), unsure(at('1', 3))],
  ['a created event of a deleted database', nothing, nothing, reported('created', 'deleted'), GONE],
  ['an updated event of a deleted database', nothing, nothing, reported('updated'), GONE],
  ['a deleted event of a deleted database', nothing, nothing, reported('deleted'), undefined],
  ['an updated event of a database that _all_dbs does not list', nothing, at('1', 3), reported('updated'), undefined],
  ['an updated event of a known database', at('1', 3), at('1', 4), reported('updated'), undefined],
  [
    'a deleted and a created event of a known database',
    at('1', 3),
    at('2', 4),
    reported('deleted', 'created'),
    undefined,
  ],
  ['a retry of a failed write', unsure(at('1', 3)), at('1', 4), reported('created'), unsure(at('1', 3))],
  ['a created event after one of an unknown life', some, at('1', 4), reported('created'), unsure(at('1', 4))],
])('the note before writing is right: %s', (_, known, read, written, note) => {
  expect(noteBefore(known, read, written)).toEqual(note)
})

const readings = [nothing, at('1', 0), at('1', 2), at('2', 0), at('2', 3)]
const unsureOnes = [some, GONE, unsure(at('1', 0)), unsure(at('2', 0))]
const EVENTS: readonly DatabaseEvent[] = ['created', 'updated', 'deleted']
const anyOf = EVENTS.reduce<DatabaseEvent[][]>((sets, event) => [...sets, ...sets.map((set) => [...set, event])], [[]])

/** Writes the events of the feed and then those that a sweep finds, while the database is unchanged. */
function write(known: Known, now: Known, events: readonly DatabaseEvent[]) {
  const first = events.length > 0 ? eventsToWrite(known, now, new Set(events)).flat() : []
  const between = events.length > 0 ? knownAfter(known, now, new Set(first)) : known
  const found = new Set(eventsBetween(between, now))
  const rest = found.size > 0 ? eventsToWrite(between, now, found).flat() : []
  const after = found.size > 0 ? knownAfter(between, now, new Set(rest)) : between
  return { written: [...first, ...rest], after }
}

const cases = [...readings, ...unsureOnes].flatMap((known) =>
  readings.flatMap((now) => anyOf.map((events) => ({ known, now, events }))),
)

test('after any feed rows a sweep completes the events, and the next sweep finds none', () => {
  for (const { known, now, events } of cases) {
    const { written, after } = write(known, now, events)
    for (const needed of eventsBetween(known, now))
      expect(written, JSON.stringify({ known, now, events })).toContain(needed)
    expect(eventsBetween(after, now)).toEqual([])
  }
})

test('after any feed rows the last event matches the database', () => {
  for (const { known, now, events } of cases) {
    const { written } = write(known, now, events)
    if (written.length === 0) continue
    expect(written.at(-1) === 'deleted', JSON.stringify({ known, now, events })).toBe(now === undefined)
  }
})

test('a database in the same life gets a deleted event only if the feed has a created row', () => {
  for (const { known, now, events } of cases) {
    if (!now || known?.life !== now.life || events.includes('created')) continue
    expect(write(known, now, events).written, JSON.stringify({ known, now, events })).not.toContain('deleted')
  }
})
