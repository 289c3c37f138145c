/** Properties of merging any branches of a channel, checked with generated branches. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { userMachines } from '../../ddocs/machines.ts'
import { mergeChannel } from '../../sidecar/channels/requests/merge-channel.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { fold, type FoldOptions } from '../../sidecar/docstate/conflicts/fold.ts'
import type { Conflict, Resolver } from '../../sidecar/docstate/conflicts/merge.ts'

const { channel: machine } = userMachines
const people = ['bob', 'carl', 'dora', 'eve'].map((name) => `${name}@example.com`)
const requests = fc.record({
  members: fc.subarray(people),
  data: fc.dictionary(fc.constantFrom('color', 'icon'), fc.constantFrom('red', 'sun')),
})
/** Made by a device, with or without processing by the sidecar. */
const made = requests.chain((request) =>
  fc.constantFrom(
    { ...request, state: 'new' },
    { ...request, state: 'accepted' },
    { ...request, state: 'ready', database: 'channel-1' },
  ),
)
const anyState = requests.chain((request) =>
  fc
    .constantFrom(...Object.keys(machine))
    .chain((state) =>
      fc.constantFrom(
        { ...request, state },
        { ...request, state, database: 'channel-1' },
        { ...request, state, database: 'channel-2' },
      ),
    ),
)
const stored = (fields: object, rev: string): StoredDoc => ({
  ...{ _id: 'photos', _rev: rev, type: 'channel', name: 'photos', owner: 'ann@example.com' },
  ...fields,
})
/** As many different revisions as branches. */
const revs = (count: number) =>
  fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom(...'abcdef')), {
    ...{ minLength: count, maxLength: count, selector: (rev) => rev.join('-') },
  })
const resolver: Resolver = mergeChannel({ now: () => 0 })
const strict: Pick<FoldOptions, 'resolver' | 'onFault'> = {
  resolver,
  onFault: (fault: unknown) => {
    throw new Error('the resolver failed', { cause: fault })
  },
}
/** Ignores the fault of the resolver when a branch has an unknown state; that branch does not count. */
const lenient: typeof strict = { resolver, onFault: () => undefined }
const foolish: typeof strict = { ...lenient, resolver: ({ theirs }: Conflict) => ({ ...theirs, state: 'bogus' }) }

const branchesOf = (one: fc.Arbitrary<object>, count: number) =>
  fc
    .tuple(fc.array(one, { minLength: count, maxLength: count }), revs(count))
    .map(([docs, all]) => docs.map((doc, at) => stored(doc, all[at]!.join('-'))))

const merge = (
  [shown, ...others]: readonly StoredDoc[],
  begin: object = { base: undefined },
  { resolver, onFault } = strict,
): Doc =>
  fold(
    shown!,
    others.map((leaf) => ({ leaf, base: undefined, ...begin })),
    { machine, resolver, onFault },
  )
const plain = ({ members, _rev: _, ...doc }: Doc & { members?: unknown }) => {
  return { ...doc, members: [...((members as string[] | undefined) ?? [])].sort() }
}

test('a merge of channels made apart unites all members, in any order, and a second merge changes nothing', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 4 }).chain((count) => branchesOf(made, count)),
      (branches) => {
        const merged = merge(branches)
        const all = [...new Set(branches.flatMap(({ members }) => members as string[]))].sort()
        expect(plain(merged).members).toEqual(all)
        expect(plain(merge([...branches].reverse())).members).toEqual(all)
        for (const leaf of branches)
          expect(plain(merge([stored(merged, '10-a'), leaf])).members, String(leaf.state)).toEqual(all)
      },
    ),
  )
})

test('two branches merge into the same document, whichever branch is shown', () => {
  fc.assert(
    fc.property(
      branchesOf(anyState, 2),
      fc.option(anyState),
      fc.constantFrom('0-a', undefined),
      ([one, other], base, baseRev) => {
        const begin = baseRev && { base: base ? stored(base, baseRev) : undefined, baseRev }
        expect(plain(merge([one!, other!], begin))).toEqual(plain(merge([other!, one!], begin)))
      },
    ),
  )
})

test('a merge never leads to an unknown state, even if a branch has one', () => {
  const any = fc.oneof(
    anyState,
    requests.map((request) => ({ ...request, state: 'bogus' })),
  )
  fc.assert(
    fc.property(
      branchesOf(any, 3),
      fc.option(any),
      fc.constantFrom('0-a', undefined),
      fc.boolean(),
      (branches, base, baseRev, isTheirOwn) => {
        const begin = baseRev && { base: base ? stored(base, baseRev) : undefined, baseRev }
        const { state } = merge(branches, begin, isTheirOwn ? lenient : foolish)
        const isAnyKnown = branches.some((branch) => Object.hasOwn(machine, String(branch.state)))
        if (isAnyKnown) expect(Object.keys(machine)).toContain(state)
      },
    ),
  )
})
