/**
 * The sidecar as a process, its mail server, and a site with inbox and CouchDB at the same origin. Browsers run apps
 * made with the client. The page of an app has `startClient`, and after that `client`.
 */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { bundle } from '../../client/example/bundle.ts'
import { exampleFiles } from '../../client/example/files.ts'
import { serveSite, type Site } from '../../client/example/site.ts'
import type { Client, ClientOptions, Status } from '../../client/src/index.ts'
import { withEsbuild } from '../../sidecar/deploy/bundle.ts'
import { linkIn, openRegistration, typeCode, type Registration } from '../acceptance/registration.ts'
import { findChromium, openBrowser } from '../support/browser.ts'
import { couchUrl, serverKind } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import type { TestDb } from './stage.ts'

declare global {
  var client: Client<TestDb>
  var PouchDB: new (name: string) => TestDb
  function startClient(options?: Partial<ClientOptions<TestDb>>): Promise<void>
}

const HARNESS = `
  import PouchDB from 'pouchdb'
  import { createClient } from 'couchdb-sidecar-client'
  globalThis.startClient = async (options) => {
    globalThis.client = await createClient({ PouchDB, name: 'app', inbox: '/inbox', couchdb: '/couchdb', ...options })
  }
  globalThis.PouchDB = PouchDB
`
const BLANK =
  '<!doctype html><html lang="en"><title>An app</title><script type="module" src="/harness.js"></script></html>'

export interface BrowserStage {
  readonly registration: Registration
  readonly site: Site
  readonly browser: Browser
}

/**
 * For all tests of a file: call it at the top, and give each test its own users. Returns the stage of the running test.
 * Call `needs('browser')` first.
 */
export function shareBrowserStage(): () => Promise<BrowserStage> {
  let opened: Awaited<ReturnType<typeof openStage>> | undefined
  beforeAll(async () => {
    if (findChromium() !== undefined) opened = await openStage()
  })
  afterAll(() => opened?.close())
  return async () => ({ ...opened!, browser: await openBrowser() })
}

async function openStage() {
  const registration = await openRegistration({ SIDECAR_INBOX_RATE: '10000' })
  const [harness, example] = await withEsbuild(() => Promise.all([bundle(HARNESS), exampleFiles('/example/')]))
  const site = await serveSite({
    files: {
      '/': { type: 'text/html; charset=utf-8', body: BLANK },
      '/harness.js': { type: 'text/javascript', body: harness },
      ...example,
    },
    proxies: {
      '/inbox': `${registration.sidecar.url}/inbox`,
      '/example/inbox': `${registration.sidecar.url}/inbox`,
      '/couchdb': new URL(couchUrl()).origin,
      '/example/couchdb': new URL(couchUrl()).origin,
    },
    port: 0,
  })
  return { registration, site, close: () => site.close().then(() => registration.close()) }
}

export interface BrowserDevice {
  readonly context: BrowserContext
  readonly page: Page
  /** Errors of the page. */
  readonly complaints: string[]
}

/** The lowest number of iterations allowed for a device; pouchdb-server supports SHA-1 only. */
const hashing = () => ({ prf: serverKind() === 'embedded' ? 'sha' : 'sha256', iterations: 1000 }) as const

/** Opens the app, in a new browser context or in the given one. */
export async function openApp(
  { site, browser }: BrowserStage,
  { context, ...options }: Partial<ClientOptions<TestDb>> & { readonly context?: BrowserContext } = {},
): Promise<BrowserDevice> {
  const own = context ?? (await browser.newContext())
  const page = await own.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(site.url)
  await begin(page, options)
  return { context: own, page, complaints }
}

/** The local registration data of a device. */
export interface Kept {
  readonly id: string
  readonly user: string
  readonly password: string
  readonly database: string
}

export const keptBy = ({ page }: BrowserDevice): Promise<Kept> =>
  page.evaluate(async () => {
    const kept = await new PouchDB('app-control').get('_local/couchdb-sidecar-client')
    return kept.registration as Kept
  })

export interface PageRequest {
  readonly method: string
  readonly path: string
  readonly body?: object
}

/** Sends a request from the page, with the device's credentials or none; resolves with status and text. */
export const ask = ({ page }: BrowserDevice, requested: PageRequest, authorization?: string) =>
  page.evaluate(
    async ({ method, path, body, authorization }) => {
      const headers = {
        ...(body && { 'Content-Type': 'application/json' }),
        ...(authorization !== undefined && { Authorization: authorization }),
      }
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(path, { ...init, credentials: 'omit' })
      return { status: answer.status, text: await answer.text() }
    },
    { ...requested, authorization },
  )

/** The Authorization header of a device for CouchDB. */
export const asBasic = ({ user, password }: Kept): string => `Basic ${btoa(`${user}:${password}`)}`

/** Starts the client in the page; needed after a reload, too. */
export async function begin(page: Page, options: Partial<ClientOptions<TestDb>> = {}): Promise<void> {
  await page.waitForFunction(() => 'startClient' in globalThis)
  await page.evaluate((all) => startClient(all), { roundMs: 1000, hashing: hashing(), ...options })
}

export const statusOf = ({ page }: BrowserDevice): Promise<Status> => page.evaluate(() => client.status)

export const untilStatus = (device: BrowserDevice, isTrue: (status: Status) => boolean): Promise<Status> =>
  eventually(async () => {
    const status = await statusOf(device)
    if (!isTrue(status)) throw new Error(`not yet: ${JSON.stringify(status)}`)
    return status
  })

export async function registerApp(
  stage: BrowserStage,
  device: BrowserDevice,
  owner: string,
  name: string,
): Promise<void> {
  await device.page.evaluate((registering) => client.register(registering), { owner, name })
  await followMail(stage, owner, async () => (await statusOf(device)).registration.deviceCode!)
  await untilStatus(device, ({ control }) => control.state === 'live')
}

/** Acts as the owner: opens the link of the newest unused mail, and types the code shown on the device. */
export async function followMail({ registration }: BrowserStage, owner: string, code: () => Promise<string>) {
  const link = await eventually(() => {
    const unused = linksIn(registration, owner).filter((one) => !used.has(one))
    if (unused.length === 0) throw new Error('no mail yet')
    return unused.at(-1)!
  })
  used.add(link)
  const { status } = await typeCode(link, await code())
  if (status !== 200) throw new Error(`the page behind the link answers ${status}`)
}

const used = new Set<string>()

/** Leaves out invitations. */
const linksIn = ({ smtp, sidecar }: Registration, owner: string): string[] =>
  smtp.accepted
    .filter(({ envelope, text }) => envelope.to.includes(owner) && text?.includes('/confirm/'))
    .map(({ text }) => linkIn(text, sidecar.url))

export const write = ({ page }: BrowserDevice, channel: string, _id: string) =>
  page.evaluate(([id, _id]) => client.open(id!).put({ _id, text: _id }), [channel, _id])

/** Ids of the notes of a channel in the device's local database. */
export const notesOn = async ({ page }: BrowserDevice, channel: string): Promise<string[]> => {
  const ids = await page.evaluate(async (id) => (await client.open(id).allDocs()).rows.map((row) => row.id), channel)
  return ids.filter((id) => !id.startsWith('_') && id !== 'description')
}
