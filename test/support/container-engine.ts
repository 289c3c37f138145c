import { execFile } from 'node:child_process'
import { request } from 'node:http'
import { promisify } from 'node:util'

const PING_MS = 1000

/** Whether a container engine answers at `DOCKER_HOST` or at the default socket. Takes at most one second. */
export function engineAnswers(): Promise<boolean> {
  const engine = new URL(process.env.DOCKER_HOST || 'unix:///var/run/docker.sock')
  const isSocket = engine.protocol === 'unix:'
  const address = isSocket ? { socketPath: engine.pathname } : { host: engine.hostname, port: engine.port }
  return new Promise((resolve) => {
    const ping = request({ ...address, path: '/_ping', timeout: PING_MS }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
    ping.on('timeout', () => ping.destroy())
    ping.on('error', () => resolve(false))
    ping.end()
  })
}

/** The docker compose command of this machine, if it has a container engine. */
export async function findCompose(): Promise<string[] | undefined> {
  if (!(await engineAnswers())) return undefined
  for (const [command, ...args] of [['docker', 'compose'], ['docker-compose']] as const) {
    const found = promisify(execFile)(command, [...args, 'version'])
    if (await found.then(Boolean, () => false)) return [command, ...args]
  }
  return undefined
}
