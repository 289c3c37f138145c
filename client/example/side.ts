import type { Client, DeviceStatus, Status } from 'couchdb-sidecar-client'
import { button, field, fill, form, h } from './dom.ts'
import { wordsOf } from './words.ts'

const addressesIn = (text: string): string[] => text.split(/[\s,;]+/).filter(Boolean)

/** The list of channels with a form for a new one, and the list of devices. */
export function sideView(client: Client) {
  const channels = h('ul', { class: 'channels' })
  const none = h('p', { class: 'quiet' }, 'No notebook yet. Make one: it works offline, too.')
  const devices = h('ul', { class: 'devices' })
  const make = form(
    [
      field('name', 'Name', { required: true, maxlength: '100' }),
      field('members', 'Share with (mail addresses)', { inputmode: 'email' }),
    ],
    'Make it',
    async ({ name = '', members = '' }) => {
      location.hash = `#${await client.createChannel({ name, members: addressesIn(members) })}`
      details.open = false
    },
  )
  const details = h('details', {}, h('summary', {}, 'New notebook'), make)
  const devicesCard = h('section', { class: 'card' }, h('h2', {}, 'Devices'), devices)
  const element = h(
    'div',
    { class: 'side' },
    h('section', { class: 'card' }, h('h2', {}, 'Notebooks'), none, channels, details),
    devicesCard,
  )

  const drawDevice = ({ user, name, state, isThis }: DeviceStatus): Node[] => {
    const words = [isThis && 'this one', state === 'revoked' && 'locked out'].filter(Boolean).join(', ')
    const revoke = () =>
      confirm(`Lock ${name} out? It keeps what it has, and gets nothing more.`)
        ? client.revokeDevice(user)
        : Promise.resolve()
    const label = h('span', {}, name, words ? h('span', { class: 'quiet' }, ` (${words})`) : '')
    return state === 'revoked' ? [label] : [label, button('Lock out', revoke)]
  }

  return {
    element,
    update(status: Status, opened: string | undefined): void {
      none.hidden = status.channels.length > 0
      const rows = status.channels.map(({ id, name, ...channel }) => {
        return { id, name, current: id === opened, ...wordsOf({ id, name, ...channel }) }
      })
      fill(
        channels,
        rows,
        ({ id }) => id,
        ({ id, name, current, text, look }) => [
          h(
            'a',
            { href: `#${encodeURIComponent(id)}`, ...(current && { 'aria-current': 'page' }) },
            h('strong', {}, name),
            h('span', { class: `sync ${look}` }, text),
          ),
        ],
      )
      devicesCard.hidden = status.devices.length === 0
      fill(devices, status.devices, ({ user }) => user, drawDevice)
    },
  }
}
