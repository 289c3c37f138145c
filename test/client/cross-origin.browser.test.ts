/** The app, the sidecar and CouchDB at three origins. CouchDB is configured as the client's README says. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../acceptance/build.ts'
import { couchUrl, createTestCouch, needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { notesOn, openApp, registerApp, shareBrowserStage, untilStatus, write } from './browser-stage.ts'
import { answerOf } from '../support/answers.ts'

const openStage = shareBrowserStage()

type Setting = readonly [path: string, value: string]

/** The `ini` block of the README, for this origin. */
async function settingsFor(origin: string): Promise<Setting[]> {
  const readme = await readFile(join(root, 'client', 'README.md'), 'utf8')
  const ini = /```ini\n(?<lines>[^`]*)```/.exec(readme)!.groups!.lines!
  let section = ''
  return ini.split('\n').flatMap((line): Setting[] => {
    section = /^\[(?<name>.*)\]$/.exec(line)?.groups?.name ?? section
    const [key, value] = line.split(' = ')
    return value === undefined ? [] : [[`${section}/${key}`, key === 'origins' ? origin : value]]
  })
}

/** Resolves with the old value, empty if it was not set. Uses fetch, because the answer is a text and no document. */
async function configureNode(method: string, path: string, value?: string): Promise<string> {
  const { origin, username, password } = new URL(couchUrl())
  const headers = { authorization: `Basic ${btoa(`${username}:${decodeURIComponent(password)}`)}` }
  const answer = await fetch(`${origin}/${path}`, {
    method,
    headers,
    body: value === undefined ? null : JSON.stringify(value),
  })
  expect(answer.status).toBe(200)
  return (await answer.json()) as string
}

/** Configures every node until the end of the test. */
async function configure(settings: readonly Setting[]): Promise<void> {
  const { cluster_nodes: nodes } = await answerOf<{ cluster_nodes: string[] }>(createTestCouch(), {
    path: '_membership',
  })
  for (const node of nodes) {
    for (const [setting, value] of settings) {
      const path = `_node/${encodeURIComponent(node)}/_config/${setting}`
      const before = await configureNode('PUT', path, value)
      onTestFinished(async () => {
        if (before === '') await configureNode('DELETE', path)
        else await configureNode('PUT', path, before)
      })
    }
  }
}

test('an app at another origin than the sidecar and CouchDB registers and syncs', async () => {
  needs('browser')
  needs('node endpoints')
  const stage = await openStage()
  await configure(await settingsFor(new URL(stage.site.url).origin))
  const places = { inbox: `${stage.registration.sidecar.url}/inbox`, couchdb: new URL(couchUrl()).origin }
  const open = async () => openApp(stage, { ...places, context: await stage.browser.newContext({ bypassCSP: true }) })
  const [phone, tablet] = [await open(), await open()]
  const ann = `${uniqueName('ann')}@example.com`
  await registerApp(stage, phone, ann, 'phone')
  await registerApp(stage, tablet, ann, 'tablet')
  const id = await phone.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await write(phone, id, 'from the phone')
  await untilStatus(tablet, ({ channels }) => channels.some(({ name, local }) => name === 'photos' && local))
  await write(tablet, id, 'from the tablet')
  for (const device of [phone, tablet]) {
    const wanted = ['from the phone', 'from the tablet']
    await eventually(async () => expect((await notesOn(device, id)).sort()).toEqual(wanted))
  }
})
