import type { Db } from '../pouch.ts'
import {
  isControlDoc,
  subscriptionIdOf,
  type ChannelDoc,
  type ControlDoc,
  type DeviceDoc,
  type SubscriptionDoc,
} from './control-documents.ts'

/** The current documents of the local control database. */
export interface View {
  readonly channels: readonly ChannelDoc[]
  readonly devices: readonly DeviceDoc[]
  channel(id: string): ChannelDoc | undefined
  subscription(channelId: string): SubscriptionDoc | undefined
  /** Reads all documents, then follows their changes. `onChange` is called for each change, local or replicated. */
  begin(onChange: () => void): Promise<void>
  /** Reads one document now, before the feed delivers it. */
  refresh(id: string): Promise<void>
  end(): void
}

export function createView(db: Db): View {
  const docs = new Map<string, ControlDoc>()
  let end = () => {}

  function take(id: string, doc: unknown): boolean {
    if (isControlDoc(doc)) docs.set(id, doc)
    else if (!docs.delete(id)) return false
    return true
  }

  const ofType = <Type extends ControlDoc['type']>(type: Type) =>
    [...docs.values()].filter((doc): doc is Extract<ControlDoc, { type: Type }> => doc.type === type)

  function find<Type extends ControlDoc['type']>(type: Type, id: string) {
    const doc = docs.get(id)
    return doc?.type === type ? (doc as Extract<ControlDoc, { type: Type }>) : undefined
  }

  return {
    get channels() {
      return ofType('channel')
    },
    get devices() {
      return ofType('device')
    },
    channel: (id) => find('channel', id),
    subscription: (channelId) => find('subscription', subscriptionIdOf(channelId)),

    async begin(onChange) {
      const { update_seq: since } = await db.info()
      const { rows } = await db.allDocs({ include_docs: true })
      for (const { id, doc } of rows) take(id, doc)
      const changes = db.changes({ since, live: true, include_docs: true })
      changes.on('change', ({ id, doc, deleted }) => {
        if (take(id, deleted ? undefined : doc)) onChange()
      })
      end = () => changes.cancel()
    },
    async refresh(id) {
      const { rows } = await db.allDocs({ keys: [id], include_docs: true })
      const [row] = rows
      take(id, row && 'doc' in row ? row.doc : undefined)
    },
    end: () => end(),
  }
}
