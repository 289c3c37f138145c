import type { Client, Status } from 'couchdb-sidecar-client'
import { button, field, form, h } from './dom.ts'
import { wordsOfRegistration } from './words.ts'

/** The steps until the device is active. The notebooks stay visible meanwhile, and the user can already write notes. */
export function registrationView(client: Client) {
  const { platform = 'this device' } = navigator
  const first = h(
    'section',
    { class: 'card welcome' },
    h('h1', {}, 'Your notes, on all your devices'),
    h('p', { class: 'quiet' }, 'No password: you confirm each device by a mail, once.'),
    form(
      [
        field('owner', 'Your mail address', { type: 'email', required: true, autocomplete: 'email' }),
        field('name', 'What this device is called', { value: platform, maxlength: '100', required: true }),
      ],
      'Register this device',
      ({ owner = '', name = '' }) => client.register({ owner, name }),
    ),
  )
  const text = h('p', { role: 'status' })
  const code = h('output', { class: 'code', 'aria-label': 'Code of this device' })
  const wrong = h('p', { class: 'quiet', role: 'status' })
  const again = h(
    'div',
    { class: 'row' },
    button('Send another mail', () => client.askAgain()),
  )
  const typed = h(
    'details',
    {},
    h('summary', {}, 'Or type the code of the mail in here'),
    form([field('code', 'Code or link of the mail', { required: true })], 'Confirm', ({ code = '' }) =>
      client.confirm(code),
    ),
    wrong,
  )
  const title = h('h2', {})
  const card = h('section', { class: 'card' }, title, text, code, again, typed)

  return {
    first,
    card,
    update({ registration }: Status): void {
      const { state, deviceCode = '', confirmation } = registration
      const isRefused = registration.error?.code === 'refused'
      first.hidden = !['none', 'revoked'].includes(state) && !isRefused
      card.hidden = state === 'none' || state === 'active'
      title.textContent = state === 'revoked' ? 'This device is locked out' : 'Confirm this device'
      text.textContent = wordsOfRegistration(registration)
      code.textContent = deviceCode
      const hasCode = ['unsent', 'new', 'confirming'].includes(state)
      code.hidden = !hasCode
      typed.hidden = !hasCode
      again.hidden = isRefused || !['confirming', 'expired', 'error'].includes(state)
      wrong.textContent = confirmation?.state === 'error' ? 'That code does not match. Look at the last mail.' : ''
    },
  }
}
