import { expect } from 'vitest'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import type { Effect } from './recorder.ts'

/** The results of all documents by type. */
interface Outcome {
  readonly type: string
  readonly written: number
  readonly done: number
  readonly parked: number
  /** Documents that are neither done nor parked. */
  readonly lost: readonly string[]
  /** Documents that are done without an effect. */
  readonly skipped: readonly string[]
  /** Documents with more than one effect. */
  readonly twice: readonly string[]
  /** Documents whose effects had more than one key. */
  readonly otherKeys: readonly string[]
}

const TYPES = ['safe', 'park', 'retry'] as const

function outcomesOf(docs: readonly StoredDoc[], effects: readonly Effect[]): Outcome[] {
  const byDoc = new Map<string, Effect[]>()
  for (const effect of effects) byDoc.set(effect.doc, [...(byDoc.get(effect.doc) ?? []), effect])
  const isParked = ({ docstate }: StoredDoc) => (docstate as { parked?: unknown } | undefined)?.parked !== undefined
  return TYPES.map((type) => {
    const ours = docs.filter((doc) => doc.type === type)
    const idsOf = (found: readonly StoredDoc[]) => found.map(({ _id }) => _id)
    const done = ours.filter(({ state }) => state === 'done')
    const parked = ours.filter((doc) => doc.state !== 'done' && isParked(doc))
    const twice = ours.filter(({ _id }) => (byDoc.get(_id)?.length ?? 0) > 1)
    return {
      type,
      written: ours.length,
      done: done.length,
      parked: parked.length,
      lost: idsOf(ours.filter((doc) => !done.includes(doc) && !parked.includes(doc))),
      skipped: idsOf(done.filter(({ _id }) => !byDoc.has(_id))),
      twice: idsOf(twice),
      otherKeys: idsOf(twice.filter(({ _id }) => new Set(byDoc.get(_id)!.map(({ key }) => key)).size > 1)),
    }
  })
}

const rowOf = ({ type, written, done, parked, lost, skipped, twice, otherKeys }: Outcome): string =>
  `${type.padEnd(5)}  ${written} written, ${done} done, ${parked} parked, ${lost.length} lost, ` +
  `${skipped.length} done without effect, ${twice.length} run twice (${otherKeys.length} with another key)`

/** Prints the results, and fails if a document is lost or an unsafe handler has run twice. */
export function expectOutcomes(docs: readonly StoredDoc[], effects: readonly Effect[]): void {
  const outcomes = outcomesOf(docs, effects)
  console.log(outcomes.map(rowOf).join('\n'))
  for (const id of outcomes.flatMap(({ lost, skipped, otherKeys }) => [...lost, ...skipped, ...otherKeys])) {
    console.log(JSON.stringify(docs.find(({ _id }) => _id === id)))
    console.log(JSON.stringify(effects.filter(({ doc }) => doc === id)))
  }
  for (const { type, lost, skipped, twice, otherKeys } of outcomes) {
    const first = docs.find(({ _id }) => _id === lost[0])
    expect(lost, `${type}: lost documents; the first: ${JSON.stringify(first)}`).toEqual([])
    expect(skipped, `${type}: documents done without an effect`).toEqual([])
    expect(otherKeys, `${type}: effects with another key`).toEqual([])
    if (type === 'park') expect(twice, 'park: documents run twice').toEqual([])
  }
}
