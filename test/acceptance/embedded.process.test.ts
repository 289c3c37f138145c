/** The sidecar without settings or other software: the first experience of a user. */
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { needs } from '../support/couchdb.ts'
import { createControl } from './control.ts'
import { launch } from './launch.ts'
import type { CaughtMail } from './hostile/stage.ts'
import { startProcess } from './process.ts'
import type { Sidecar } from './sidecar.ts'
import { startSidecar } from './start.ts'
import { linkIn, settingsOf, typeCode } from './registration.ts'

/** Does the same as the banner's curl command. */
function pasted(sidecar: Pick<Sidecar, 'output'>): { url: URL; device: string } {
  const [, url, device] = /curl -X POST (\S+) [^]*? -d '(.*)'/.exec(sidecar.output()) ?? []
  return { url: new URL(url!), device: device! }
}

/** A request with the credentials of the URL: fetch refuses credentials in a URL. */
function ask({ origin, pathname, username, password }: URL, init: RequestInit = {}): Promise<Response> {
  const authorization = `Basic ${btoa(`${username}:${password}`)}`
  return fetch(origin + pathname, { ...init, headers: { authorization, 'content-type': 'application/json' } })
}

test('a user pastes the banner’s command, follows the mail, and logs in as the device', async () => {
  needs('mail catcher')
  const sidecar = await startSidecar({})
  const { url, device } = await eventually(() => pasted(sidecar))
  const { id } = (await (await ask(url, { method: 'POST', body: device })).json()) as { id: string }
  const mail = await eventually(async () => {
    const mails = (await (await fetch(`${sidecar.url}/_mail/api/mails`)).json()) as CaughtMail[]
    expect(mails).toHaveLength(1)
    return mails[0]!
  })
  expect(sidecar.output()).toContain(`${sidecar.url}/_mail`)
  expect(mail.to).toEqual(['you@example.com'])
  const { body } = await typeCode(linkIn(mail.text, sidecar.url))
  expect(body).toMatchObject({ ok: true })

  const session = new URL('/_session', url)
  session.username = body.user!
  session.password = body.password!
  expect(await (await ask(session)).json()).toMatchObject({ userCtx: { name: body.user, roles: [expect.any(String)] } })
  const registered = await (await ask(new URL(`${url.href}/${id}`))).json()
  expect(registered).toMatchObject({ state: 'active', user: body.user })

  expect(await sidecar.stop()).toBe(0)
  await expect(ask(url)).rejects.toThrow()
})

test('the database of the banner’s command exists as soon as the banner is printed', async () => {
  needs('mail catcher')
  const { child, kill } = launch(['start'], { SIDECAR_PORT: '0' })
  onTestFinished(kill)
  let output = ''
  await new Promise<void>((resolve) => {
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      if ((output += part).includes('Ctrl-C stops.')) resolve()
    })
  })
  const { url, device } = pasted({ output: () => output })
  expect((await ask(url, { method: 'POST', body: device })).status).toBe(201)
})

test('the embedded servers exit when their sidecar is killed', async () => {
  needs('mail catcher')
  const sidecar = await startProcess({})
  const { url } = await eventually(() => pasted(sidecar))
  expect((await ask(url)).status).toBe(200)
  await sidecar.kill()
  await eventually(() => expect(ask(url)).rejects.toThrow())
})

test('the log and _up report that the embedded server has exited by itself', async () => {
  needs('process table')
  needs('mail catcher')
  const sidecar = await startProcess({ SIDECAR_GRACE: '0s' })
  const servers = childrenOf(sidecar.pid).filter(({ command }) => command.includes('embedded/dist'))
  expect(servers).toHaveLength(1)
  process.kill(servers[0]!.pid, 'SIGKILL')
  const said = expect.objectContaining({ level: 50, msg: 'the embedded CouchDB ended by itself' }) as unknown
  await eventually(() => expect(sidecar.log).toContainEqual(said))
  await eventually(async () => expect((await fetch(`${sidecar.url}/_up`)).status).toBe(503))
  expect(await sidecar.stop()).toBe(0)
})

test('with an external CouchDB, the mail catcher warns that it delivers no mail', async () => {
  needs('mail catcher')
  const sidecar = await startSidecar(settingsOf(await createControl()))
  const [line] = sidecar.log.filter(({ msg }) => msg.includes('SMTP_URL is not set'))
  expect(line).toMatchObject({ level: 40, caught: `${sidecar.url}/_mail` })
})
