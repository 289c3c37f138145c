import type { Client, ClientOptions } from './api.ts'
import { asNow, localOf, withLocals } from './channels/locals.ts'
import { placeOf } from './channels/wanted.ts'
import {
  changeChannel,
  changeOwner,
  closeChannel,
  createChannel,
  type ChannelChange,
} from './control/channel-wishes.ts'
import { subscriptionIdOf } from './control/documents.ts'
import { accept, decline, end, revokeDevice, setPaused } from './control/subscription-wishes.ts'
import { createView } from './control/view.ts'
import { createEmitter } from './emitter.ts'
import { CONTROL, createEngine, NO_SYNCS, type Engine } from './engine.ts'
import { ClientError } from './errors.ts'
import type { Db, Pouch } from './pouch.ts'
import { randomHex } from './registration/credentials.ts'
import { createInbox } from './registration/inbox.ts'
import { beginRegistration, codeIn, isRefused } from './registration/registration.ts'
import { snapshotOf } from './snapshot.ts'
import type { Events, Status } from './status.ts'
import { createStore } from './store.ts'
import { openTabs, type Message } from './tabs/tabs.ts'
import { onWake } from './wake.ts'

/** So long changes are gathered into one snapshot. */
const GATHER_MS = 50

/** Resolves when what is local was read. Works offline. */
export async function createClient<D>(options: ClientOptions<D>): Promise<Client<D>> {
  const PouchDB = options.PouchDB as unknown as Pouch
  const { name, live = 3, roundMs = 30_000, hashing, couchdb } = options
  const stopping = new AbortController()
  const emitter = createEmitter<Events>()
  const opened = new Map<string, Db>()
  const openLocal = (local: string): Db => {
    const db = opened.get(local) ?? new PouchDB(`${name}-${local}`)
    opened.set(local, db)
    return db
  }
  const db = openLocal(CONTROL)
  const tabs = openTabs(name, hear)
  const store = createStore(db, () => {
    tabs.tell({ kind: 'kept' })
    void look()
  })
  const view = createView(db)
  /** Only while this tab leads. */
  let engine: Engine | undefined
  /** What the leader says. */
  let told = NO_SYNCS
  let status: Status
  let gathering: ReturnType<typeof setTimeout> | undefined
  let looking = Promise.resolve()

  function hear(message: Message): void {
    switch (message.kind) {
      case 'kept':
        void store.load().then(look)
        engine?.register()
        break
      case 'touched':
        engine?.touch(message.id)
        break
      case 'syncs':
        told = message.syncs
        changed()
        break
      case 'hello':
        if (engine) tabs.tell({ kind: 'syncs', syncs: engine.syncs })
    }
  }

  /** Looks at the whole: gives channels their local databases, then starts and stops what is to be. */
  function look(): Promise<void> {
    looking = looking
      .catch(() => undefined)
      .then(async () => {
        if (stopping.signal.aborted) return
        await store.update((kept) => withLocals(kept, view.channels))
        engine?.settle()
        emit()
      })
    return looking
  }

  function changed(): void {
    gathering ??= setTimeout(emit, GATHER_MS)
  }

  function emit(): void {
    clearTimeout(gathering)
    gathering = undefined
    if (stopping.signal.aborted) return
    const before = status && JSON.stringify(status)
    const next = snapshotOf(store.kept, view, engine?.syncs ?? told)
    if (JSON.stringify(next) === before) return
    status = next
    if (engine) tabs.tell({ kind: 'syncs', syncs: engine.syncs })
    emitter.emit('change', status)
  }

  /** What was written is known at once, not when the feed brings it. */
  async function wrote(id: string): Promise<void> {
    await view.refresh(id)
    await look()
  }

  async function lead(signal: AbortSignal): Promise<void> {
    const inbox = createInbox(options.inbox.replace(/\/$/, ''))
    const onRefused = (refused: Events['refused']) => emitter.emit('refused', refused)
    engine = createEngine({
      ...{ PouchDB, inbox, store, view, openLocal, live, roundMs, onChange: changed, onRefused },
      ...(hashing && { hashing }),
      ...(couchdb !== undefined && { couchdb: couchdb.replace(/\/$/, '') }),
    })
    const stopWaking = onWake((how) => engine?.wake(how))
    await engine.run(signal)
    stopWaking()
    engine = undefined
  }

  function registration() {
    const { registration } = store.kept
    if (registration) return registration
    throw new ClientError('not_registered', 'expected a registration, got none; call register first, offline is fine')
  }

  function user(): string {
    const { user } = registration()
    if (user !== undefined) return user
    throw new ClientError('wrong_state', 'expected a device that is active, got one that is not yet')
  }

  const withChange = async (id: string, change: ChannelChange) => {
    await changeChannel(db, id, change)
    await wrote(id)
  }
  const subscribed = async (id: string, write: Promise<void>) => {
    await write
    await wrote(subscriptionIdOf(id))
  }

  await store.load()
  await view.begin(() => void look())
  await look()
  const leading = tabs.lead(lead, stopping.signal)
  tabs.tell({ kind: 'hello' })
  const touch = (id: string) => {
    if (engine) engine.touch(id)
    else tabs.tell({ kind: 'touched', id })
  }

  async function stopAll(): Promise<void> {
    stopping.abort()
    clearTimeout(gathering)
    await leading
    await looking
    view.end()
    tabs.close()
    await Promise.all([...opened.values()].map((one) => one.close()))
  }

  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= stopAll())

  return {
    get status() {
      return status
    },
    on: (event, listener) => emitter.on(event, listener),

    async register(registering) {
      await store.update((kept) => {
        const next = beginRegistration(kept.registration, registering)
        return next === kept.registration ? undefined : { ...kept, registration: next }
      })
      if (store.kept.registration?.database === undefined) await changeOwner(db, view.channels, registering.owner)
      await look()
      engine?.register()
    },
    async askAgain() {
      if (isRefused(registration()))
        throw new ClientError('wrong_state', 'expected a registration that the server takes; call register again')
      await store.update(({ registration, ...kept }) => ({
        ...kept,
        registration: { ...registration!, wantsMail: true },
      }))
      engine?.register()
    },
    async confirm(text) {
      registration()
      const confirmation = { id: `confirm-${randomHex()}`, code: codeIn(text), state: 'unsent' } as const
      await store.update(({ registration, ...kept }) => ({ ...kept, registration: { ...registration!, confirmation } }))
      await look()
      engine?.register()
    },

    async createChannel(channel) {
      const id = await createChannel(db, registration().owner, channel)
      await wrote(id)
      return id
    },
    changeChannel: withChange,
    setMembers: (id, members) => withChange(id, { members }),
    async closeChannel(id, close) {
      await closeChannel(db, id, close)
      await wrote(id)
    },
    open(id) {
      const channel = view.channel(id)
      const local = channel && localOf(store.kept, channel)
      if (!local) throw new ClientError('unknown', `expected a channel that is, or was, on this device, got ${id}`)
      touch(id)
      return openLocal(local.name) as D
    },

    accept: (id) => subscribed(id, accept(db, id)),
    decline: (id) => subscribed(id, decline(db, id)),
    end: (id) => subscribed(id, end(db, id)),
    pause: async (id, where = {}) => subscribed(id, setPaused(db, id, user(), 'paused', where)),
    resume: async (id, where = {}) => subscribed(id, setPaused(db, id, user(), 'active', where)),

    async forget(id) {
      const channel = view.channel(id)
      const place = channel && placeOf(asNow(store.kept, channel), view.subscription(id), store.kept.registration?.user)
      if (place === 'synced' || place === 'unready')
        throw new ClientError('in_use', `expected a channel that is not synced here, got one that is ${place}`)
      const locals = store.kept.locals.filter((one) => one.channel === id)
      for (const local of locals) {
        await openLocal(local.name).destroy()
        opened.delete(local.name)
      }
      await store.update((kept) => ({ ...kept, locals: kept.locals.filter((one) => one.channel !== id) }))
      await look()
    },
    async revokeDevice(user) {
      await revokeDevice(db, user)
      await wrote(user)
    },
    stop,
    async destroy() {
      const names = [...store.kept.locals.map((local) => local.name), CONTROL]
      await stop()
      for (const local of names) await new PouchDB(`${name}-${local}`).destroy()
    },
  }
}
