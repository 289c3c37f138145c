/**
 * What one tab has: the databases that are open, what is kept, what stands in the control database; while it leads, the
 * engine. Something changes, the whole is looked at, syncs are started and stopped, one snapshot is told.
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
import { onWake } from './wake.ts'

export interface Tab {
  readonly status: Status
  readonly on: Emitter<Events>['on']
  /** The local control database. */
  readonly db: Db
  readonly store: Store
  readonly view: View
  readonly databases: Databases
  here(channel: ChannelDoc): Here
  /** Gives channels their local databases, then starts and stops what is to be. */
  look(): Promise<void>
  /** There is something to send to the inbox. */
  register(): void
  /** A page uses this channel. */
  touch(id: string): void
  stop(): Promise<void>
  destroy(): Promise<void>
}

/** Resolves when what is local was read. */
export async function openTab(options: ClientOptions<unknown>): Promise<Tab> {
  const PouchDB = options.PouchDB as unknown as Pouch
  const { name, live = 3, roundMs = 30_000, hashing } = options
  const inboxUrl = addressOf('inbox', options.inbox)
  const couchdb = options.couchdb === undefined ? undefined : addressOf('couchdb', options.couchdb)
  const stopping = new AbortController()
  const emitter = createEmitter<Events>()
  const databases = openDatabases(PouchDB, name)
  const db = databases.open(CONTROL)
  const tabs = openTabs(name, hear)
  const store = createStore(db, (kept, before) => {
    tabs.tell({ kind: 'kept' })
    if (kept.registration !== before.registration) looks.now().catch(() => undefined) // the rest is written by looks
  })
  const view = createView(db)
  /** Only while this tab leads. */
  let engine: Engine | undefined
  /** The engine's end. */
  let running = Promise.resolve()
  /** What the leader says. */
  let told = NO_SYNCS
  /** Why what is kept could not be read or written. */
  let failure: Failure | undefined
  let stopped: Promise<void> | undefined
  const looks = createLooks(look, failed)
  const display = createDisplay(
    () => snapshotOf(store.kept, view, { ...(engine?.syncs ?? told), ...(failure && { failure }) }),
    (status) => {
      if (engine) tabs.tell({ kind: 'syncs', syncs: engine.syncs })
      emitter.emit('change', status)
    },
  )

  function hear(message: Message): void {
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
        told = message.syncs
        display.refreshSoon()
        break
      case 'refused':
        emitter.emit('refused', message.refused)
        break
      case 'hello':
        if (engine) tabs.tell({ kind: 'syncs', syncs: engine.syncs })
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
    tabs.tell({ kind: 'refused', refused })
    emitter.emit('refused', refused)
  }

  /** Every page hears itself that the network is back; only one of them is looked at. */
  function wake(how: { readonly hard: boolean }): void {
    if (engine) engine.wake(how)
    else if (!how.hard) tabs.tell({ kind: 'seen' })
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

  /** When the other tabs have stopped, too. */
  async function destroyAll(): Promise<void> {
    await stop()
    await databases.destroyAll([...store.kept.locals.filter(isLocal).map(({ name }) => name), CONTROL])
    tabs.tell({ kind: 'destroyed' }) // to those that were opened meanwhile
    display.show(NOTHING)
  }

  const stopWaking = onWake(wake)

  await store.load()
  await view.begin(() => looks.soon())
  await looks.now().catch(() => display.refresh()) // with what could be read
  tabs.lead((signal) => (running = runEngine(signal)), stopping.signal).catch(failed)
  tabs.tell({ kind: 'hello' })

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
      else tabs.tell({ kind: 'touched', id })
    },
    async stop() {
      await stop()
      tabs.close()
    },
    async destroy() {
      tabs.tell({ kind: 'destroyed' })
      void stop()
      await tabs.alone(destroyAll)
      tabs.close()
    },
  }
}
