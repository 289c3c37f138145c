import type { Client, ClientOptions } from './api.ts'
import { isLocal } from './channels/locals.ts'
import {
  changeChannel,
  changeOwner,
  closeChannel,
  createChannel,
  type ChannelChange,
} from './control/channel-requests.ts'
import { subscriptionIdOf } from './control/control-documents.ts'
import { accept, decline, end, leave, revokeDevice, setPaused } from './control/subscription-requests.ts'
import { ClientError } from './errors.ts'
import { randomHex } from './registration/credentials.ts'
import { beginRegistration, codeIn, isRefused } from './registration/registration.ts'
import { openTab } from './tab.ts'

/**
 * Creates a client. Resolves when the local data is read. Works offline.
 *
 * @throws ClientError `bad_argument` if an address is invalid
 */
export async function createClient<D>(options: ClientOptions<D>): Promise<Client<D>> {
  const tab = await openTab(options)
  const { db, store, view } = tab

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

  /** Reads a document at once, before the feed delivers it. */
  async function know(id: string): Promise<void> {
    await view.refresh(id)
    await tab.look()
  }

  const withChange = async (id: string, change: ChannelChange) => {
    await changeChannel(db, id, change)
    await know(id)
  }
  const subscribed = async (id: string, write: Promise<void>) => {
    await write
    await know(subscriptionIdOf(id))
  }

  return {
    get status() {
      return tab.status
    },
    on: tab.on,

    async register(registering) {
      await store.update((kept) => {
        const next = beginRegistration(kept.registration, registering)
        return next === kept.registration ? undefined : { ...kept, registration: next }
      })
      if (store.kept.registration?.database === undefined) await changeOwner(db, view.channels, registering.owner)
      await tab.look()
      tab.register()
    },
    async askAgain() {
      if (isRefused(registration()))
        throw new ClientError('wrong_state', 'expected a registration that the server accepts; call register again')
      await store.update(({ registration, ...kept }) => ({
        ...kept,
        registration: { ...registration!, wantsMail: true },
      }))
      tab.register()
    },
    async confirm(text) {
      registration()
      const confirmation = { id: `confirm-${randomHex()}`, code: codeIn(text), state: 'unsent' } as const
      await store.update(({ registration, ...kept }) => ({ ...kept, registration: { ...registration!, confirmation } }))
      await tab.look()
      tab.register()
    },

    async createChannel(channel) {
      const { owner } = registration()
      if (channel.id !== undefined) await know(channel.id) // finds the end of its last life
      const id = await createChannel(db, owner, channel)
      await know(id)
      return id
    },
    changeChannel: withChange,
    setMembers: (id, members) => withChange(id, { members }),
    async closeChannel(id, close) {
      const channel = view.channel(id)
      if (channel?.state === 'accepted' && channel.database !== tab.here(channel).database)
        throw new ClientError('wrong_state', 'expected a channel that exists, got one that is being created again')
      await closeChannel(db, id, close)
      await know(id)
    },
    open(id) {
      const channel = view.channel(id)
      const local = channel && tab.here(channel).local
      if (!local) throw new ClientError('unknown', `expected a channel that is, or was, on this device, got ${id}`)
      tab.touch(id)
      return tab.databases.open(local.name) as D
    },

    accept: async (id) => {
      const state = view.channel(id)?.state
      const hasLeft = view.subscription(id)?.state === 'left'
      if (!hasLeft && (state === 'removed' || state === 'closed'))
        throw new ClientError('wrong_state', `expected a channel that this user is in, got one that is ${state}`)
      await subscribed(id, accept(db, id))
    },
    decline: (id) => subscribed(id, decline(db, id)),
    end: (id) => subscribed(id, end(db, id)),
    leave: (id) => subscribed(id, leave(db, id)),
    pause: async (id, where = {}) => subscribed(id, setPaused(db, id, user(), 'paused', where)),
    resume: async (id, where = {}) => subscribed(id, setPaused(db, id, user(), 'active', where)),

    async forget(id) {
      const channel = view.channel(id)
      const place = channel && tab.here(channel).place
      if (place === 'synced' || place === 'unready')
        throw new ClientError('in_use', `expected a channel that is not synced here, got one that is ${place}`)
      const locals = store.kept.locals.filter(isLocal).filter((one) => one.channel === id)
      for (const { name } of locals) await tab.databases.destroy(name)
      await store.update((kept) => ({ ...kept, locals: kept.locals.filter((one) => one.channel !== id) }))
      await tab.look()
    },
    async revokeDevice(user) {
      await revokeDevice(db, user)
      await know(user)
    },
    stop: () => tab.stop(),
    destroy: () => tab.destroy(),
  }
}
