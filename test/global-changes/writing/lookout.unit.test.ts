import { expect, test } from 'vitest'
import { eventsBetween, knownAfter, type Known } from '../../../sidecar/global-changes/writing/lookout.ts'

const at = (life: string, changes: number) => ({ life, changes })
const nothing: Known = undefined

test.each([
  ['is not there and never was', nothing, nothing, []],
  ['is new and empty', nothing, at('1', 0), ['created']],
  ['is new and has changes', nothing, at('1', 3), ['created', 'updated']],
  ['is as it was', at('1', 3), at('1', 3), []],
  ['has changed', at('1', 3), at('1', 4), ['updated']],
  ['was read from a node that is behind', at('1', 3), at('1', 2), []],
  ['was made again', at('1', 3), at('2', 0), ['deleted', 'created']],
  ['was made again and has fewer changes', at('1', 3), at('2', 1), ['deleted', 'created', 'updated']],
  ['is gone', at('1', 3), nothing, ['deleted']],
])('a database that %s', (_, known, now, events) => {
  expect(eventsBetween(known, now)).toEqual(events)
})

test.each([
  ['an update', at('1', 3), at('1', 5), ['updated'], at('1', 5)],
  ['an update of what nobody told that it was made', nothing, at('1', 5), ['updated'], nothing],
  ['that it was made, and has changed since', nothing, at('1', 5), ['created'], at('1', 0)],
  ['that it was made and changed', nothing, at('1', 5), ['created', 'updated'], at('1', 5)],
  ['that it was made again', at('1', 3), at('2', 5), ['created'], at('2', 0)],
  ['an update of one that is another by now', at('1', 3), at('2', 5), ['updated'], at('1', 3)],
  ['an update of one that is gone by now', at('1', 3), nothing, ['updated'], at('1', 3)],
  ['that it is gone', at('1', 3), nothing, ['deleted'], nothing],
  ['that it is gone, while it is there', at('1', 3), at('1', 3), ['deleted'], at('1', 3)],
  ['an update, read from a node that is behind', at('1', 3), at('1', 2), ['updated'], at('1', 3)],
])('after %s is written', (_, known, read, events, after) => {
  expect(knownAfter(known, read, new Set(events as never))).toEqual(after)
})

test('whatever the events told, a sweep tells the rest', () => {
  const readings = [nothing, at('1', 0), at('1', 2), at('2', 0), at('2', 3)]
  for (const known of readings) {
    for (const now of readings) {
      for (const told of [[], ['updated'], ['created'], ['deleted'], ['created', 'updated'], ['deleted', 'created']]) {
        const after = knownAfter(known, now, new Set(told as never))
        const rest = [...told, ...eventsBetween(after, now)]
        for (const needed of eventsBetween(known, now)) {
          if (needed !== 'deleted' || !now) expect(rest).toContain(needed)
        }
        expect(eventsBetween(now, now)).toEqual([])
      }
    }
  }
})
