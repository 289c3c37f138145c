import type { ChannelStatus, Client } from 'couchdb-sidecar-client'
import { button, field, fill, form, h } from './dom.ts'
import { changeNote, deleteNote, followNotes, type Note, type NotesDb } from './notes.ts'
import { wordsOf } from './words.ts'

const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** One channel: its notes, the state of its sync, and the actions that its user may take. */
export function paneView(client: Client<NotesDb>, id: string) {
  const title = h('h1', {})
  const words = h('span', { class: 'sync', role: 'status' })
  const about = h('p', { class: 'quiet' })
  const actions = h('div', { class: 'row' })
  const list = h('ul', { class: 'notes', 'aria-label': 'Notes', 'aria-live': 'polite' })
  const add = form([field('text', 'Note', { required: true })], 'Add', async ({ text = '' }) => {
    const at = new Date().toISOString()
    await client.open(id).put({ _id: `note:${at}:${crypto.randomUUID()}`, text, at })
  })
  add.className = 'inline'
  const members = h('input', { name: 'members', 'aria-label': 'Members', inputmode: 'email' })
  const share = h('form', {}, h('div', { class: 'row' }, members, h('button', {}, 'Save members')))
  share.addEventListener('submit', (event) => {
    event.preventDefault()
    void client.setMembers(id, members.value.split(/[\s,;]+/).filter(Boolean))
  })
  const sharing = h('details', {}, h('summary', {}, 'Share'), share)
  const element = h(
    'section',
    { class: 'card pane' },
    h('a', { href: '#', class: 'back' }, '← All notebooks'),
    h('div', { class: 'title' }, title, words),
    about,
    actions,
    add,
    list,
    sharing,
  )
  let drawn = ''
  let local: string | undefined
  let endFollowing = () => {}

  const drawNotes = (notes: readonly Note[]) =>
    fill(
      list,
      notes,
      ({ _id }) => _id,
      (note) => noteView(client.open(id), note),
    )

  return {
    element,
    end: () => endFollowing(),
    update(channel: ChannelStatus): void {
      if (channel.local !== local) {
        endFollowing()
        local = channel.local
        if (local !== undefined) endFollowing = followNotes(client.open(id), drawNotes)
      }
      const { text, look } = wordsOf(channel)
      title.textContent = channel.name
      words.textContent = text
      words.className = `sync ${look}`
      about.textContent = aboutOf(channel)
      add.hidden = !['synced', 'paused', 'unready'].includes(channel.place)
      sharing.hidden = !channel.isOwner || channel.place === 'closed'
      const { place, state, onlyHere, members: shared } = channel
      const now = JSON.stringify([place, state, onlyHere, shared])
      if (now === drawn) return
      drawn = now
      members.value = shared.join(', ')
      actions.replaceChildren(...actionsOf(client, channel))
    },
  }
}

/** A note with a form to change it. `fill` redraws its list item when the note has changed. */
function noteView(db: NotesDb, { _id, text, at }: Note): Node[] {
  const change = form([field('text', 'Change the note', { required: true, value: text })], 'Save', ({ text = '' }) =>
    changeNote(db, _id, text),
  )
  change.className = 'inline'
  change.hidden = true
  const edit = () => {
    change.hidden = !change.hidden
    change.querySelector('input')?.focus()
    return Promise.resolve()
  }
  return [
    h('span', {}, text),
    h('small', {}, dates.format(new Date(at))),
    h(
      'div',
      { class: 'row' },
      button('Edit', edit),
      button('Delete', () => deleteNote(db, _id)),
    ),
    change,
  ]
}

function aboutOf({ isOwner, owner, members, sync, error, place, from = owner }: ChannelStatus): string {
  if (error) return error.reason ?? error.code
  if (place === 'invited') return `${from} shares this with you.`
  const whose = isOwner ? '' : `Of ${owner}. `
  const shared = members.length > 0 ? `Shared with ${members.join(', ')}. ` : 'Only yours. '
  return `${whose}${shared}${sync.read} received, ${sync.written} sent.`
}

function actionsOf(client: Client<NotesDb>, { id, place, state, isOwner, onlyHere, name }: ChannelStatus): Node[] {
  switch (place) {
    case 'invited':
      return [button('Accept', () => client.accept(id), 'main'), button('Decline', () => client.decline(id))]
    case 'synced':
      return [
        button('Pause', () => client.pause(id)),
        button('Pause here', () => client.pause(id, { onlyHere: true })),
        ...(isOwner && state === 'ready' ? [button('Close', () => closing(client, id, name))] : []),
        ...(isOwner ? [] : [button('Leave', () => client.end(id))]),
      ]
    case 'paused':
      return [button('Go on', () => client.resume(id, { onlyHere }), 'main')]
    case 'ended':
      return [button('Take it up again', () => client.accept(id)), button('Remove from here', () => client.forget(id))]
    case 'removed':
      return [button('Remove from here', () => client.forget(id))]
    case 'closed':
      return state === 'closed' ? [button('Remove from here', () => client.forget(id))] : []
    case 'unready':
      return []
  }
}

const closing = (client: Client<NotesDb>, id: string, name: string): Promise<void> =>
  confirm(`Close ${name} for everybody? What is on the devices stays there.`)
    ? client.closeChannel(id, 'archive')
    : Promise.resolve()
