/** The proxies of examples/reverse-proxy/, unchanged except for names, certificates and addresses. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'
import { startOnOwnPort } from '../support/free-port.ts'
import { startOwnedProcess } from '../support/owned-process.ts'
import { skipFor } from '../support/features.ts'

export type Kind = 'nginx' | 'Caddy'

const BINARIES: Readonly<Record<Kind, readonly string[]>> = {
  nginx: ['/usr/sbin/nginx', '/usr/local/sbin/nginx'],
  Caddy: ['/usr/bin/caddy', '/usr/local/bin/caddy'],
}
const FOLDER = 'examples/reverse-proxy'
const START_MS = 90_000

/** `http://127.0.0.1:port` of each upstream. */
interface Upstreams {
  readonly couch: string
  readonly sidecar: string
}

export interface ReverseProxy {
  readonly couch: string
  readonly sidecar: string
  end(): Promise<void>
}

/** Skips the running test where the proxy is not installed. */
export async function startReverseProxy(kind: Kind, upstreams: Upstreams): Promise<ReverseProxy> {
  const binary = BINARIES[kind].find(existsSync)
  if (binary === undefined) skipFor(`${kind} is not installed on this machine`)
  const home = await mkdtemp(join(tmpdir(), 'reverse-proxy-'))
  return startOnOwnPort(async (port) => {
    const addresses = { couch: `http://127.0.0.1:${port}`, sidecar: `http://127.0.0.1:${port + 1}` }
    const begin = kind === 'nginx' ? nginx : caddy
    const { command, env } = await begin({ binary: binary!, home, port, upstreams })
    const running = await startOwnedProcess({ command, home, log: 'proxy.log', env })
    const end = () => running.end('remove')
    try {
      await untilUp([addresses.couch, addresses.sidecar])
      return { ...addresses, end }
    } catch (thrown) {
      const log = await readFile(join(home, 'proxy.log'), 'utf8')
      await end()
      throw new Error(`${kind} did not start: ${log}`, { cause: thrown })
    }
  })
}

interface Begin {
  readonly binary: string
  readonly home: string
  readonly port: number
  readonly upstreams: Upstreams
}

const addressOf = (url: string): string => new URL(url).host

async function nginx({ binary, home, port, upstreams }: Begin) {
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const folders = names.map((name) => `${name}_temp_path ${home}/${name};`).join('\n')
  const example = (await readFile(join(FOLDER, 'nginx.conf'), 'utf8'))
    .replaceAll(/^ +ssl_certificate.*$/gm, '')
    .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port + 1}`)
    .replace('127.0.0.1:5984', addressOf(upstreams.couch))
    .replace('127.0.0.1:5985', addressOf(upstreams.sidecar))
  const main = `daemon off; master_process off; pid ${home}/pid; error_log stderr warn;
events {}
http { access_log off; ${folders}\n${example} }`
  await writeFile(join(home, 'nginx.conf'), main)
  return { command: [binary, '-p', home, '-c', join(home, 'nginx.conf')], env: process.env }
}

async function caddy({ binary, home, port, upstreams }: Begin) {
  const env = {
    ...{ ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home },
    COUCH_SITE: `http://127.0.0.1:${port}`,
    SIDECAR_SITE: `http://127.0.0.1:${port + 1}`,
    COUCH_ADDRESS: addressOf(upstreams.couch),
    SIDECAR_ADDRESS: addressOf(upstreams.sidecar),
  }
  const example = await readFile(join(FOLDER, 'Caddyfile'), 'utf8')
  await writeFile(join(home, 'Caddyfile'), example.replace('{\n', '{\n\tadmin off\n'))
  return { command: [binary, 'run', '--adapter', 'caddyfile', '--config', join(home, 'Caddyfile')], env }
}

async function untilUp(urls: readonly string[]): Promise<void> {
  const deadline = performance.now() + START_MS
  for (const url of urls) {
    while (
      !(await fetch(url).then(
        () => true,
        () => false,
      ))
    ) {
      if (performance.now() > deadline) throw new Error(`nothing listens at ${url}`)
      await delay(50)
    }
  }
}

export interface Raw {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends the path as written: `fetch` would normalize it. */
export async function ask(base: string, path: string, { method = 'GET', headers = {}, body }: Raw = {}) {
  const { hostname, port } = new URL(base)
  const json = { 'content-type': 'application/json', ...headers }
  const request = http.request({ hostname, port, path, method, headers: json, agent: false })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return { status: response.statusCode!, text: await text(response) }
}
