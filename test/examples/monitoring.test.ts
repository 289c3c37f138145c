/** The files of examples/monitoring/ on a real Prometheus that scrapes a real sidecar. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { startOnOwnPort } from '../support/free-port.ts'
import { ROWS, renderDashboard } from '../../tools/dashboard.ts'
import { createControl } from '../acceptance/control.ts'
import { writeModule } from '../acceptance/own-handlers.ts'
import { settingsOf } from '../acceptance/registration.ts'
import { startSidecar } from '../acceptance/start.ts'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { skipFor } from '../support/features.ts'
import { startOwnedProcess } from '../support/owned-process.ts'

const FOLDER = 'examples/monitoring'
const [PROMETHEUS, PROMTOOL] = ['/usr/bin/prometheus', '/usr/bin/promtool']
const run = promisify(execFile)

const needsPrometheus = () => existsSync(PROMETHEUS) || skipFor('Prometheus is not installed on this machine')

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

const readRules = async () => parse(await readFile(`${FOLDER}/rules.yml`, 'utf8')) as Rules

test('promtool accepts the rules, and each tested alert fires as expected', async () => {
  needsPrometheus()
  await run(PROMTOOL, ['check', 'rules', 'rules.yml'], { cwd: FOLDER })
  await run(PROMTOOL, ['test', 'rules', 'rules.test.yml'], { cwd: FOLDER })
  const settings = (await readFile(`${FOLDER}/prometheus.yml`, 'utf8')).replace('couchdb_password', '/dev/null')
  const home = await mkdtemp(join(tmpdir(), 'prometheus-'))
  await writeFile(join(home, 'rules.yml'), await readFile(`${FOLDER}/rules.yml`))
  await writeFile(join(home, 'prometheus.yml'), settings)
  await run(PROMTOOL, ['check', 'config', 'prometheus.yml'], { cwd: home })
})

test('the dashboard file matches its table', async () => {
  await expect(renderDashboard()).toMatchFileSnapshot(`../../${FOLDER}/grafana-dashboard.json`)
})

/** Scrapes this sidecar each second, with the settings and the rules of the example. */
async function startPrometheus(sidecar: string): Promise<string> {
  const { username, password } = new URL(couchUrl())
  const home = await mkdtemp(join(tmpdir(), 'prometheus-'))
  const settings = (await readFile(`${FOLDER}/prometheus.yml`, 'utf8'))
    .replace('15s', '1s')
    .replace('username: prometheus', `username: ${username}`)
    .replace(/targets: .*/, `targets: ['${new URL(sidecar).host}']`)
  await writeFile(join(home, 'prometheus.yml'), settings.replace('global:', 'global:\n  evaluation_interval: 1s'))
  await writeFile(join(home, 'couchdb_password'), decodeURIComponent(password))
  const rules = await readFile(`${FOLDER}/rules.yml`, 'utf8')
  await writeFile(join(home, 'rules.yml'), rules.replaceAll(/for: \d+m/g, 'for: 1s'))
  return startOnOwnPort(async (port) => {
    const command = [
      PROMETHEUS,
      `--config.file=${join(home, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(home, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    const running = await startOwnedProcess({ command, home, log: 'prometheus.log', env: process.env })
    onTestFinished(() => running.end('remove'))
    const url = `http://127.0.0.1:${port}`
    await eventually(async () => expect((await fetch(`${url}/-/ready`)).ok).toBe(true))
    return url
  })
}

test('a real Prometheus scrapes a sidecar: every expression has a result, and an alert reports the failure', async () => {
  needsPrometheus()
  const control = await createControl()
  const handlers = await writeModule(`
    export default {
      machines: { order: { paid: { mode: 'safe', create: 'client', next: { done: 'sidecar', error: 'sidecar' } }, done: {}, error: {} } },
      register(control) {
        control.safe('order', 'paid', () => { throw new Error('no such article') }, { attempts: 1 })
      },
    }`)
  const settings = settingsOf(control, { SIDECAR_HANDLERS: handlers, SIDECAR_DATABASES: control.name })
  const sidecar = await startSidecar(settings)
  await control.admin.put({ _id: 'o1', type: 'order', state: 'paid' })
  const url = await startPrometheus(sidecar.url)
  const ask = async <T>(path: string): Promise<T> => {
    const answer = (await (await fetch(`${url}/api/v1/${path}`)).json()) as { status: string; data: T; error?: string }
    expect(answer.error, path).toBeUndefined()
    return answer.data
  }
  const query = async (expr: string) =>
    (await ask<{ result: unknown[] }>(`query?${new URLSearchParams({ query: expr }).toString()}`)).result

  await eventually(async () => {
    const { alerts } = await ask<{ alerts: { state: string; labels: Record<string, string> }[] }>('alerts')
    const firing = alerts.filter(({ state }) => state === 'firing')
    expect(firing.map(({ labels }) => [labels.alertname, labels.type, labels.state])).toEqual([
      ['SidecarDocumentsFailed', 'order', 'paid'],
    ])
  })
  const all = ROWS.flatMap(([, panels]) => panels.flatMap(({ queries }) => queries))
  for (const { expr } of all) {
    const requested = expr.replaceAll('$__rate_interval', '1m').replaceAll('$database', '.*')
    await eventually(async () => expect(await query(requested), requested).not.toEqual([]))
  }
  for (const { expr } of (await readRules()).groups.flatMap(({ rules }) => rules)) await query(expr)
})
