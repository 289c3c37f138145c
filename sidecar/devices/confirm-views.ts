/** The pages behind the link of a confirmation mail. */
import { html } from 'hono/html'
import { copyScript, page, type Html } from '../http/page.ts'
import type { Followed } from './confirmations.ts'

/** A form that posts to the page's own URL, which a proxy in front may have changed. */
const codeForm = (): Html =>
  html`<form method="post">
    <label for="device_code">Code on the device</label>
    <input
      id="device_code"
      name="device_code"
      type="text"
      inputmode="text"
      maxlength="64"
      autocomplete="off"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      required
      autofocus
    />
    <button type="submit">Confirm this device</button>
  </form>`

/**
 * The page for a followed link. A valid link shows the device and the address; a used link shows that it was used. All
 * other links get one form, which reveals nothing.
 */
export function formView(followed: Followed = { kind: 'unknown' }): Html {
  if (followed.kind === 'used') return usedView(followed)
  const { name, owner } = followed.kind === 'open' ? followed : { name: undefined, owner: undefined }
  const device = name === undefined ? html`The device` : html`<strong>${name}</strong>`
  return page(
    'Confirm your device',
    html`<h1>Confirm your device</h1>
      ${
        owner === undefined
          ? html`<p>Type in the code that the device shows. The device then belongs to your address.</p>`
          : html`<p>${device} wants to belong to <strong>${owner}</strong>. Type in the code that it shows.</p>`
      }
      <p>
        It can then read and change all that your devices share, invite others, and revoke your other devices.
        <strong>Type in no code that another person has told or written to you</strong>, only the one on the screen of
        your own device.
      </p>
      ${codeForm()}
      <p class="quiet">If you have not asked for this, close the page: nothing happens without the code.</p>`,
  )
}

const usedView = ({ name, owner }: { readonly name: string | undefined; readonly owner: string }): Html =>
  page(
    'This link was used',
    html`<h1>This link was used</h1>
      <p>
        ${name === undefined ? 'The device' : html`<strong>${name}</strong>`} was confirmed for ${owner}: there is
        nothing left to do.
      </p>
      <p class="quiet">If the device still waits, type its code in once more, or ask for a new mail on it.</p>
      ${codeForm()}`,
  )

export interface Confirmed {
  readonly user?: string | undefined
  readonly password?: string | undefined
}

export const confirmedView = ({ user, password }: Confirmed): Html =>
  page(
    'Your device is confirmed',
    html`<h1>Your device is confirmed</h1>
      <p>You can go back to it now; it does the rest by itself.</p>
      ${credentials({ user, password })}
      <p class="quiet">You may close this page.</p>`,
  )

function credentials({ user, password }: Confirmed): Html | undefined {
  if (user === undefined) return undefined
  if (password === undefined) return html`<p>Its user name is <code>${user}</code>.</p>`
  return html`<p>
      The device logs in with these to keep its data the same as on your other devices. If it asks for them, type or
      paste them in; if it does not, you need not keep them. <strong>The password is shown only this once</strong>.
    </p>
    <dl>
      <dt>User name</dt>
      <dd><code>${user}</code> ${copyButton('user name')}</dd>
      <dt>Password</dt>
      <dd><code>${password}</code> ${copyButton('password')}</dd>
    </dl>
    ${copyScript}`
}

/** A copy button, hidden until the script shows it. */
const copyButton = (what: string): Html => html`<button type="button" class="copy" hidden>Copy the ${what}</button>`

/** One page for a wrong, a used and an unknown code or link: the page does not reveal which. */
export const refusedView = (): Html =>
  page(
    'That did not match',
    html`<h1>That did not match</h1>
      <p>
        This code does not go with this link, or the link is not good any more. Look at the code on the device again:
      </p>
      ${codeForm()}
      <p class="quiet">If it still does not work, ask for a new mail on the device and use the link in that one.</p>`,
  )

export const expiredView = (): Html =>
  page(
    'This link has expired',
    html`<h1>This link has expired</h1>
      <p>Request a new mail on the device, and use its link.</p>`,
  )

export const pendingView = (deviceCode: string): Html =>
  page(
    'One moment',
    html`<h1>One moment</h1>
      <p>Your code has arrived. The confirmation is still in progress. Look again in a few seconds.</p>
      <form method="post">
        <input type="hidden" name="device_code" value="${deviceCode}" />
        <button type="submit" autofocus>Look again</button>
      </form>
      <p class="quiet">You may also close this page: the device finishes by itself.</p>`,
  )
