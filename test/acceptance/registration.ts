/** A running sidecar, its control database and its mail server; and what devices and their owners do with them. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { loadConfig } from '../../sidecar/config.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { finishDdoc } from '../../sidecar/deploy/keep-machines.ts'
import { controlMachinesFor } from '../../sidecar/devices/register.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'
import { couchUrl, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { openTestSmtp, type TestSmtp } from '../support/smtp.ts'
import { openControl, urlOf, type Control } from './control.ts'
import { launchProcess } from './process.ts'
import type { Settings, Sidecar } from './sidecar.ts'
import { launchSidecar } from './start.ts'

export interface Registration<S extends Sidecar = Sidecar> {
  readonly control: Control
  readonly smtp: TestSmtp
  readonly sidecar: S
  /** With which it was started: for another one, and for the commands. */
  readonly settings: Settings
}

/** As `startRegistration`, for all tests of a file, which has to close it. */
export const openRegistration = (more: Settings = {}) => openWith(launchSidecar, more, false)

/** Belongs to the running test. */
export const startRegistration = (more: Settings = {}) => closeWithTest(openWith(launchSidecar, more, false))

/** As `startRegistration`, with a sidecar that looks after indexes and events, of the databases of all other tests, too. */
export const startWatching = (more: Settings = {}) => closeWithTest(openWith(launchSidecar, more, true))

/** As `startRegistration`, with a sidecar that can be killed and paused. */
export const startRegistrationProcess = (more: Settings = {}) => closeWithTest(openWith(launchProcess, more, false))

interface Opened<S extends Sidecar> extends Registration<S> {
  close(): Promise<void>
}

async function closeWithTest<S extends Sidecar>(opening: Promise<Opened<S>>): Promise<Registration<S>> {
  const opened = await opening
  onTestFinished(() => opened.close())
  return opened
}

async function openWith<S extends Sidecar>(
  launch: (settings: Settings) => Promise<S>,
  more: Settings,
  watches: boolean,
): Promise<Opened<S>> {
  const [control, smtp] = [await openControl(), await openTestSmtp()]
  const closeBoth = async () => void (await Promise.all([control.close(), smtp.close()]))
  try {
    const settings = settingsOf(control, { SMTP_URL: smtp.url, ...more })
    if (!more.SIDECAR_HANDLERS) await deployControl(control, settings)
    if (!watches) await lookAway(control)
    const sidecar = await launch(settings)
    return { control, smtp, settings, sidecar, close: () => sidecar.end().then(closeBoth) }
  } catch (thrown) {
    await closeBoth()
    throw thrown
  }
}

/**
 * One for all tests of the file that calls this at its top: gives that of the running test, whose mail server is as new.
 * Addresses and ids are each test's own.
 */
export function shareRegistration(more: Settings = {}): () => Registration {
  let opened: Opened<Sidecar> | undefined
  beforeAll(async () => {
    opened = await openRegistration(more)
  })
  beforeEach(() => opened!.smtp.renew())
  afterAll(() => opened?.close())
  return () => opened!
}

/** As `npm run deploy:ddocs` leaves it, so that not every sidecar has to begin with that. */
export async function deployControl({ admin }: Pick<Control, 'admin'>, settings: Settings): Promise<void> {
  const machines = controlMachinesFor(loadConfig({ env: settings }))
  for (const compiled of await createCompiler()([{ folder: ddocsFolder('control'), machines }], 'es2017')) {
    await admin.put(finishDdoc(compiled, undefined).ddoc)
  }
}

/** So that a sidecar leaves alone what other tests do, all the time, to their databases and indexes. */
export async function lookAway({ admin }: Pick<Control, 'admin'>): Promise<void> {
  await admin.put({ _id: 'config:ken', ignore: ['*'] })
  await admin.put({ _id: 'config:global_changes', update_db: false })
}

export const settingsOf = (control: Pick<Control, 'name' | 'eventsName'>, more: Settings = {}): Settings => ({
  COUCHDB_URL: couchUrl(),
  SIDECAR_CONTROL_DB: control.name,
  SIDECAR_GLOBAL_CHANGES_DB: control.eventsName,
  ...more,
})

export interface NewDevice {
  readonly _id: string
  readonly owner: string
  readonly [field: string]: unknown
}

/** As a client writes it that shows the code 1234. */
export const newDevice = (fields: Record<string, unknown> = {}): NewDevice => ({
  _id: uniqueName('device'),
  type: 'device',
  state: 'new',
  owner: `${uniqueName('owner')}@example.com`,
  device_code: '1234',
  name: 'phone',
  ...fields,
})

/** Resolves with the document once it is in the state. */
export const untilState = (
  { control }: Pick<Registration, 'control'>,
  id: string,
  state: string,
  within = 20_000,
): Promise<StoredDoc> =>
  eventually(
    async () => {
      const doc = await control.admin.get(id)
      expect(doc).toMatchObject({ state })
      return doc
    },
    { within },
  )

/** Writes the device and waits until its owner has been mailed; resolves with the link in the mail. */
export async function askForMail(registration: Registration, device: NewDevice): Promise<string> {
  await registration.control.member.put(device)
  await untilState(registration, device._id, 'confirming')
  return linksTo(registration, device.owner).at(-1)!
}

/** As a device does it: it writes the state `new` over whatever it is in, again where the sidecar has written meanwhile. */
export const askAgain = ({ control }: Pick<Registration, 'control'>, id: string): Promise<unknown> =>
  eventually(async () => {
    const { error: _error, docstate: _docstate, ...device } = await control.member.get(id)
    await control.member.put({ ...device, _id: id, state: 'new' })
  })

/** The links in the mails that an address has got, on the sidecar that runs now. */
export const linksTo = ({ smtp, sidecar }: Pick<Registration, 'smtp' | 'sidecar'>, address: string): string[] =>
  smtp.accepted.filter(({ envelope }) => envelope.to.includes(address)).map(({ text }) => linkIn(text, sidecar.url))

/** The one link in a text, moved to where the sidecar is now: it may have been another port. */
export function linkIn(text: string | undefined, sidecarUrl: string): string {
  const found = text?.match(/http\S+/g) ?? []
  expect(found, text).toHaveLength(1)
  return new URL(new URL(found[0]!).pathname, sidecarUrl).href
}

/** What the form behind a link does, for a program. */
export async function typeCode(link: string, deviceCode = '1234') {
  const headers = { accept: 'application/json' }
  const answer = await fetch(link, { method: 'POST', headers, body: new URLSearchParams({ device_code: deviceCode }) })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

/** Registers a device whose credentials the page makes; resolves with them. */
export async function register(registration: Registration, device: NewDevice = newDevice()) {
  const { body } = await typeCode(await askForMail(registration, device))
  return { id: device._id, owner: device.owner, user: body.user!, password: body.password! }
}

/** `POST /_session`: resolves with the status and, if it is 200, the roles. */
export async function logIn(name: string, password: string): Promise<{ status: number; roles?: string[] }> {
  const answer = await fetch(`${new URL(urlOf()).origin}/_session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, password }),
  })
  const { roles } = (await answer.json()) as { roles?: string[] }
  return { status: answer.status, ...(roles && { roles }) }
}
