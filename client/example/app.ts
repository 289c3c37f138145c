/** An example app without a framework: notebooks that the client syncs between the devices of a user. */
import PouchDB from 'pouchdb'
import { createClient } from 'couchdb-sidecar-client'
import { h, notify } from './dom.ts'
import { paneView } from './pane.ts'
import { registrationView } from './registration.ts'
import { sideView } from './side.ts'
import { wordsOfSync } from './words.ts'

// With the service worker, the page also opens offline. A browser without service workers needs a network.
void navigator.serviceWorker?.register('sw.js').catch(() => undefined)

const client = await createClient({
  PouchDB,
  name: 'notes',
  inbox: new URL('inbox', location.href).href,
  couchdb: new URL('couchdb', location.href).href,
})
client.on('refused', ({ id, reason }) => notify(`The server does not take ${id}: ${reason}`))

const registration = registrationView(client)
const side = sideView(client)
const empty = h('p', { class: 'empty' }, 'Choose a notebook, or make one.')
const columns = h('div', { class: 'columns' }, side.element, empty)
document.querySelector('#app')!.append(registration.card, registration.first, columns)

let opened: { readonly id: string; readonly pane: ReturnType<typeof paneView> } | undefined

/** Shows the channel with this id, which the fragment of the URL names. */
function open(id: string | undefined): void {
  if (opened?.id === id) return
  opened?.pane.end()
  opened?.pane.element.remove()
  opened = id === undefined ? undefined : { id, pane: paneView(client, id) }
  if (opened) columns.append(opened.pane.element)
  empty.hidden = opened !== undefined
  columns.classList.toggle('opened', opened !== undefined)
}

function draw(): void {
  const { status } = client
  const id = decodeURIComponent(location.hash.slice(1))
  const channel = status.channels.find((one) => one.id === id)
  open(channel?.id)
  registration.update(status)
  columns.hidden = status.registration.state === 'none'
  side.update(status, channel?.id)
  if (channel) opened?.pane.update(channel)
  const isActive = status.registration.state === 'active'
  document.querySelector('#connection')!.textContent =
    isActive && status.online ? wordsOfSync(status.control).text : status.online ? '' : 'offline'
}

client.on('change', draw)
addEventListener('hashchange', draw)
draw()
