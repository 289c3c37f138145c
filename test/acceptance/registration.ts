/** A running sidecar with its control database and mail server, and the actions of devices and owners. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { loadConfig } from '../../sidecar/config.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { finishDdoc } from '../../sidecar/deploy/keep-machines.ts'
import { controlMachinesFor } from '../../sidecar/devices/register.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'
import { couchUrl, uniqueName } from '../support/couchdb.ts'
import { eventually, PATIENCE_MS } from '../support/eventually.ts'
import { openTestSmtp, type TestSmtp } from '../support/smtp.ts'
import { openControl, urlOf, type Control } from './control.ts'
import { launchProcess } from './process.ts'
import type { Settings, Sidecar } from './sidecar.ts'
import { launchSidecar } from './start.ts'

export interface Registration<S extends Sidecar = Sidecar> {
  readonly control: Control
  readonly smtp: TestSmtp
  readonly sidecar: S
  /** The settings of this sidecar, for another sidecar and for commands. */
  readonly settings: Settings
}

/** Like `startRegistration`, but for all tests of a file. The file must close it. */
export const openRegistration = (more: Settings = {}) => openWith(launchSidecar, more, false)

/** Closed at the end of the running test. */
export const startRegistration = (more: Settings = {}) => closeWithTest(openWith(launchSidecar, more, false))

/** Like `startRegistration`, with indexes and events enabled, also for the databases of other tests. */
export const startWatching = (more: Settings = {}) => closeWithTest(openWith(launchSidecar, more, true))

/** Like `startRegistration`, with a sidecar that can be killed and paused. */
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
 * Call it at the top of a file: its tests share one registration. Each test gets it with a reset mail server.
 * Each test has its own addresses and ids.
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

/** Deploys like `npm run deploy:ddocs`, to save each sidecar that step. */
export async function deployControl({ admin }: Pick<Control, 'admin'>, settings: Settings): Promise<void> {
  const machines = controlMachinesFor(loadConfig({ env: settings }))
  for (const compiled of await createCompiler()([{ folder: ddocsFolder('control'), machines }], 'es2017')) {
    await admin.put(finishDdoc(compiled, undefined).ddoc)
  }
}

/** Keeps a sidecar from following the databases and indexes of other tests. */
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

/** A device document of a client that shows the code 1234. */
export const newDevice = (fields: Record<string, unknown> = {}): NewDevice => ({
  _id: uniqueName('device'),
  type: 'device',
  state: 'new',
  owner: `${uniqueName('owner')}@example.com`,
  device_code: '1234',
  name: 'phone',
  ...fields,
})

/** Resolves with the document when it is in this state. */
export const untilState = (
  { control }: Pick<Registration, 'control'>,
  id: string,
  state: string,
  within = PATIENCE_MS,
): Promise<StoredDoc> =>
  eventually(
    async () => {
      const doc = await control.admin.get(id)
      expect(doc).toMatchObject({ state })
      return doc
    },
    { within },
  )

/** Writes the device and waits for the mail to its owner; resolves with the link in the mail. */
export async function askForMail(registration: Registration, device: NewDevice): Promise<string> {
  await registration.control.member.put(device)
  await untilState(registration, device._id, 'confirming')
  return linksTo(registration, device.owner).at(-1)!
}

/** Writes the state `new` over the current one like a device does, and repeats the write after a conflict. */
export const askAgain = ({ control }: Pick<Registration, 'control'>, id: string): Promise<unknown> =>
  eventually(async () => {
    const { error: _error, docstate: _docstate, ...device } = await control.member.get(id)
    await control.member.put({ ...device, _id: id, state: 'new' })
  })

/** The links in the mails to an address, rewritten to the running sidecar. */
export const linksTo = ({ smtp, sidecar }: Pick<Registration, 'smtp' | 'sidecar'>, address: string): string[] =>
  smtp.accepted.filter(({ envelope }) => envelope.to.includes(address)).map(({ text }) => linkIn(text, sidecar.url))

/** The only link in a text, rewritten to the running sidecar, whose port may have changed. */
export function linkIn(text: string | undefined, sidecarUrl: string): string {
  const found = text?.match(/http\S+/g) ?? []
  expect(found, text).toHaveLength(1)
  return new URL(new URL(found[0]!).pathname, sidecarUrl).href
}

/** Submits the form behind a link. */
export async function typeCode(link: string, deviceCode = '1234') {
  const headers = { accept: 'application/json' }
  const answer = await fetch(link, { method: 'POST', headers, body: new URLSearchParams({ device_code: deviceCode }) })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

/** Registers a device whose credentials the page creates; resolves with them. */
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
