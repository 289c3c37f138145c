/**
 * One tab: its open databases, the stored data and the control database's documents; while it leads, the engine. After
 * each change, the tab checks the whole state, starts and stops syncs, and shows one snapshot.
 */
import { addressOf } from './address.ts'
import type { ClientOptions } from './api.ts'
import { channelsHere, type Here } from './channels/here.ts'
import { isLocal, withLocals } from './channels/locals.ts'
import type { ChannelDoc } from './control/control-documents.ts'
import { createView, type View } from './control/view.ts'
import { openDatabases, type Databases } from './databases.ts'
import { createDisplay } from './display.ts'
import { createEmitter, type Emitter } from './emitter.ts'
import { CONTROL, createEngine, NO_SYNCS, type Engine } from './engine.ts'
import { createLooks } from './looks.ts'
import type { Db, Pouch } from './pouch.ts'
import { createInbox } from './registration/inbox.ts'
import { NOTHING, snapshotOf } from './snapshot.ts'
import type { Events, Failure, Status } from './client-status.ts'
import { createStore, type Store } from './store.ts'
import { openTabs, type Message } from './tabs/tabs.ts'

export interface Tab {
  readonly status: Status
  readonly on: Emitter<Events>['on']
  /** The local control database. */
  readonly db: Db
  readonly store: Store
  readonly view: View
  readonly databases: Databases
  here(channel: ChannelDoc): Here
  /** Assigns local databases to channels, then starts and stops syncs. */
  look(): Promise<void>
  /** Call this when something must be sent to the inbox. */
  register(): void
  /** Call this when a page uses the channel. */
  touch(id: string): void
  stop(): Promise<void>
  destroy(): Promise<void>
}

/** Opens a tab. Resolves when the local data is read. */
export async function openTab(options: ClientOptions<unknown>): Promise<Tab> {
  const PouchDB = options.PouchDB as unknown as Pouch
  const { name, live = 3, roundMs = 30_000, hashing } = options
  const inboxUrl = addressOf('inbox', options.inbox)
  const couchdb = options.couchdb === undefined ? undefined : addressOf('couchdb', options.couchdb)
  const stopping = new AbortController()
  const emitter = createEmitter<Events>()
  const databases = openDatabases(PouchDB, name)
  const db = databases.open(CONTROL)
  const tabs = openTabs(name, receive)
  const store = createStore(db, (kept, before) => {
    tabs.send({ kind: 'kept' })
    if (kept.registration !== before.registration) looks.now().catch(() => undefined) // looks write the rest
  })
  const view = createView(db)
  /** Set only while this tab leads. */
  let engine: Engine | undefined
  /** Resolves when the engine has ended. */
  let running = Promise.resolve()
  /** Syncs as the leader reports them. */
  let reported = NO_SYNCS
  /** Why the stored data cannot be read or written. */
  let failure: Failure | undefined
  let stopped: Promise<void> | undefined
  const looks = createLooks(look, failed)
  const display = createDisplay(
    () => snapshotOf(store.kept, view, { ...(engine?.syncs ?? reported), ...(failure && { failure }) }),
    (status) => {
      if (engine) tabs.send({ kind: 'syncs', syncs: engine.syncs })
      emitter.emit('change', status)
    },
  )

  function receive(message: Message): void {
    switch (message.kind) {
      case 'kept':
        looks.soon()
        engine?.register()
        break
      case 'touched':
        engine?.touch(message.id)
        break
      case 'seen':
        engine?.wake({ hard: false })
        break
      case 'syncs':
        reported = message.syncs
        display.refreshSoon()
        break
      case 'refused':
        emitter.emit('refused', message.refused)
        break
      case 'hello':
        if (engine) tabs.send({ kind: 'syncs', syncs: engine.syncs })
        break
      case 'destroyed':
        void stop()
        display.show(NOTHING)
    }
  }

  async function look(): Promise<void> {
    await store.update((kept) => {
      const here = channelsHere(kept, view)
      return withLocals(kept, view.channels, (channel) => ['synced', 'unready'].includes(here(channel).place))
    })
    failure = undefined
    engine?.settle()
    display.refresh()
  }

  function failed(thrown: unknown): void {
    failure = { code: 'failed', reason: String(thrown) }
    display.refreshSoon()
  }

  function onRefused(refused: Events['refused']): void {
    tabs.send({ kind: 'refused', refused })
    emitter.emit('refused', refused)
  }

  /** Every page notices itself that the network is back. Only one page is visible, so it informs the leader. */
  function wake(how: { readonly hard: boolean }): void {
    if (engine) engine.wake(how)
    else if (!how.hard) tabs.send({ kind: 'seen' })
  }

  async function runEngine(signal: AbortSignal): Promise<void> {
    engine = createEngine({
      PouchDB,
      inbox: createInbox(inboxUrl),
      store,
      view,
      openLocal: (local) => databases.open(local),
      live,
      roundMs,
      onRefused,
      onChange: () => display.refreshSoon(),
      ...(hashing && { hashing }),
      ...(couchdb !== undefined && { couchdb }),
    })
    try {
      await engine.run(signal)
    } finally {
      engine = undefined
    }
  }

  async function stopAll(): Promise<void> {
    stopping.abort()
    stopWaking()
    display.end()
    await Promise.allSettled([running, looks.end()])
    view.end()
    await databases.close()
  }

  function stop(): Promise<void> {
    return (stopped ??= stopAll())
  }

  /** Call this when the other tabs have stopped, too. */
  async function destroyAll(): Promise<void> {
    await stop()
    await databases.destroyAll([...store.kept.locals.filter(isLocal).map(({ name }) => name), CONTROL])
    tabs.send({ kind: 'destroyed' }) // for tabs that were opened meanwhile
    display.show(NOTHING)
  }

  const stopWaking = onWake(wake)

  await store.load()
  await view.begin(() => looks.soon())
  await looks.now().catch(() => display.refresh()) // shows what could be read
  tabs.lead((signal) => (running = runEngine(signal)), stopping.signal).catch(failed)
  tabs.send({ kind: 'hello' })

  return {
    on: (event, listener) => emitter.on(event, listener),
    db,
    store,
    view,
    databases,
    look: () => looks.now(),
    get status() {
      return display.status
    },
    here: (channel) => channelsHere(store.kept, view)(channel),
    register: () => engine?.register(),
    touch(id) {
      if (engine) engine.touch(id)
      else tabs.send({ kind: 'touched', id })
    },
    async stop() {
      await stop()
      tabs.close()
    },
    async destroy() {
      tabs.send({ kind: 'destroyed' })
      void stop()
      await tabs.alone(destroyAll)
      tabs.close()
    },
  }
}

/**
 * Calls `wake` when an immediate retry may succeed: the network is back (`hard`: old connections may hang), or the page
 * becomes visible. Does nothing without a window, as in Node or in a worker. Returns a function that stops it.
 */
function onWake(wake: (how: { readonly hard: boolean }) => void): () => void {
  const { window, document } = globalThis as Partial<Pick<typeof globalThis, 'window' | 'document'>>
  if (!window || !document) return () => undefined
  const reconnect = () => wake({ hard: true })
  const look = () => {
    if (document.visibilityState === 'visible') wake({ hard: false })
  }
  window.addEventListener('online', reconnect)
  document.addEventListener('visibilitychange', look)
  return () => {
    window.removeEventListener('online', reconnect)
    document.removeEventListener('visibilitychange', look)
  }
}
