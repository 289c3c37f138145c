import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { tmpdir } from 'node:os'
import { uniqueName } from '../support/couchdb.ts'
import { program } from './build.ts'

export interface Launched {
  readonly child: ChildProcess
  /** As by `kill -9`. */
  readonly kill: () => void
}

/** Starts the program with these arguments and this environment, in a folder without an `.env` file. */
export function launch(args: readonly string[], env: Readonly<Record<string, string>>): Launched {
  const image = process.env.TEST_IMAGE
  if (image) return launchContainer(image, args, env)
  const child = spawn(process.execPath, [program, ...args], {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { child, kill: () => void child.kill('SIGKILL') }
}

/** Of what the image sets, and of the mail catcher that it lacks: nothing listens there. */
const INSTEAD = { SIDECAR_HOST: '127.0.0.1', SMTP_URL: 'smtp://127.0.0.1:9' }

/**
 * The same in a container of that image, as close to the tests as it has to be: their servers are on 127.0.0.1, their
 * files in temporary folders that only their user may read. SIGTERM goes through docker, SIGKILL has to be asked for.
 */
function launchContainer(image: string, args: readonly string[], settings: Readonly<Record<string, string>>): Launched {
  const env = { ...INSTEAD, ...settings }
  const name = uniqueName('sidecar')
  const locked = ['--read-only', '--cap-drop', 'ALL', '--user', `${process.getuid!()}:${process.getgid!()}`]
  const seen = ['--volume', `${tmpdir()}:${tmpdir()}:ro`]
  const told = Object.keys(env).flatMap((variable) => ['--env', variable])
  const how = ['--name', name, '--network', 'host', '--stop-timeout', '20', ...locked, ...seen, ...told]
  const child = spawn('docker', ['run', ...how, image, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.once('close', () => execFile('docker', ['rm', '--force', name])) // with `run --rm`, podman's exit code is 0
  return { child, kill: () => void execFile('docker', ['kill', name], (failure) => failure && child.kill('SIGKILL')) }
}
