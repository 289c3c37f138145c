/**
 * Simulates one document in a cluster of three nodes. The test decides when each message arrives, which is impossible
 * with a real cluster. Every copy accepts the first write to a revision. Two equal results are the quorum (201), and
 * fewer give a 202 (CouchDB's `fabric_doc_update`).
 */
import { createHash } from 'node:crypto'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { BulkRow, Doc, Leaf, StoredDoc } from '../../../sidecar/couch/documents.ts'
import { CouchError } from '../../../sidecar/couch/couch-errors.ts'
import { compareRevs } from '../../../sidecar/couch/documents.ts'

const COPIES = [0, 1, 2] as const
const QUORUM = 2

/** The revisions of one copy, each with its ancestors. */
type Tree = ReadonlyMap<string, Leaf>

/** Resolves when the message with this name arrives. */
export type Travel = (message: string) => Promise<unknown>

export interface ThreeCopiesOptions {
  readonly travel: Travel
  /** Decides for each request whether its answer arrives, and which copy it does not reach. */
  readonly outcome: () => Fate
}

export interface Fate {
  readonly answered: boolean
  readonly unreached: number | undefined
}

export interface ThreeCopies {
  /** Creates a client's document at one copy. */
  make(copy: number, doc: Doc): void
  /** The database as this worker sees it. Message names contain the worker. */
  database(worker: string): Database
  /** The winning revision in the feed of this copy, with the names of its conflicts. */
  shown(copy: number): StoredDoc | undefined
  /** The leaves that are not deleted once all copies are in sync. */
  living(): readonly StoredDoc[]
  /** Called when a copy gets a new revision. */
  onNews: (copy: number) => void
}

export function createThreeCopies({ travel, outcome }: ThreeCopiesOptions): ThreeCopies {
  const trees: Tree[] = COPIES.map(() => new Map<string, Leaf>())
  let onNews = (_copy: number) => {}

  function add(copy: number, leaf: Leaf): void {
    if (trees[copy]!.has(leaf._rev)) return
    trees[copy] = new Map([...trees[copy]!, [leaf._rev, leaf]])
    onNews(copy)
    for (const other of COPIES.filter((one) => one !== copy && !trees[one]!.has(leaf._rev))) {
      void travel(`copy ${copy} informs copy ${other}`).then(() => add(other, leaf)) // internal replication
    }
  }

  /** Writes to one copy. Returns the new revision, or undefined if the parent is no leaf. */
  function edit(copy: number, doc: StoredDoc): string | undefined {
    const parent = leavesOf(trees[copy]!).find(({ _rev }) => _rev === doc._rev)
    if (!parent) return undefined
    const leaf = childOf(parent, doc)
    add(copy, leaf)
    return leaf._rev
  }

  /** Sends a request to each reachable copy and resolves after enough answers. Throws if the answer is lost. */
  async function ask<T>(
    what: string,
    question: (copy: number) => T,
    isEnough: (answers: T[]) => boolean,
  ): Promise<T[]> {
    const { answered, unreached } = outcome()
    const answers: T[] = []
    const requested = COPIES.filter((copy) => copy !== unreached)
    await new Promise<void>((resolve) => {
      for (const copy of requested) {
        void travel(`${what} to copy ${copy}`).then(() => {
          answers.push(question(copy))
          if (answers.length === requested.length || isEnough(answers)) resolve()
        })
      }
    })
    const enough = answers.slice()
    await travel(`${what} answered`)
    if (!answered) throw new CouchError('unreachable', { request: what, reason: 'the answer is lost' })
    return enough
  }

  async function write(worker: string, doc: StoredDoc): Promise<BulkRow> {
    const isQuorum = (revs: (string | undefined)[]) => revs.filter((rev) => rev !== undefined).length >= QUORUM
    const revs = await ask(`${worker} writes`, (copy) => edit(copy, doc), isQuorum)
    const rev = revs.find((one) => one !== undefined)
    if (rev === undefined) return { id: doc._id, error: 'conflict' }
    return { id: doc._id, rev, ok: true, ...(!isQuorum(revs) && { accepted: true }) }
  }

  const read = async (worker: string, copies: number) =>
    leavesOf(
      merged(
        await ask(
          `${worker} reads`,
          (copy) => trees[copy]!,
          ({ length }) => length >= copies,
        ),
      ),
    )

  return {
    make: (copy, doc) => add(copy, childOf(undefined, doc)),
    shown: (copy) => winnerOf(leavesOf(trees[copy]!)),
    living: () => leavesOf(merged(trees)).filter(({ _deleted }) => !_deleted),
    set onNews(received: (copy: number) => void) {
      onNews = received
    },
    database(worker) {
      const known: Partial<Database> = {
        name: 'three-copies',
        info: () => Promise.resolve({ cluster: { n: COPIES.length } } as Awaited<ReturnType<Database['info']>>),
        bulk: (docs) => Promise.all(docs.map((doc) => write(worker, JSON.parse(doc) as StoredDoc))),
        async merge(leaves) {
          const take = (copy: number) => leaves.forEach((leaf) => add(copy, leaf))
          await ask(`${worker} merges`, take, ({ length }) => length >= QUORUM)
        },
        leaves: (_id) => read(worker, COPIES.length),
        find: async (_id, query) => {
          const found = await ask(
            `${worker} reads`,
            (copy) => trees[copy]!,
            ({ length }) => length >= QUORUM,
          )
          return merged(found).get(String(query?.rev))
        },
        async getMany() {
          const winner = winnerOf(await read(worker, QUORUM))
          return winner ? [winner] : []
        },
      }
      return known as Database
    },
  }
}

function childOf(parent: Leaf | undefined, { _rev, _revisions, _conflicts, ...doc }: Doc): Leaf {
  const hash = createHash('md5')
    .update(JSON.stringify([parent?._rev, doc]))
    .digest('hex')
  const start = (parent?._revisions.start ?? 0) + 1
  const ids = [hash, ...(parent?._revisions.ids ?? [])]
  return { ...doc, _rev: `${start}-${hash}`, _revisions: { start, ids } }
}

const merged = (trees: readonly Tree[]): Tree => new Map(trees.flatMap((tree) => [...tree]))

/** The revisions without a child. */
function leavesOf(tree: Tree): Leaf[] {
  const all = [...tree.values()]
  const parents = new Set(
    all.flatMap(({ _revisions: { start, ids } }) => ids.slice(1).map((id, at) => `${start - 1 - at}-${id}`)),
  )
  return all.filter(({ _rev }) => !parents.has(_rev))
}

function winnerOf(leaves: readonly Leaf[]): StoredDoc | undefined {
  const [winner, ...others] = leaves.filter(({ _deleted }) => !_deleted).sort((a, b) => compareRevs(b._rev, a._rev))
  if (!winner) return undefined
  const { _revisions, ...doc } = winner
  return { ...doc, ...(others.length > 0 && { _conflicts: others.map(({ _rev }) => _rev) }) }
}
