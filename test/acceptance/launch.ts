import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { uniqueName } from '../support/couchdb.ts'
import { program } from './build.ts'

export interface Launched {
  readonly child: ChildProcess
  /** Kills the process like `kill -9`. */
  readonly kill: () => void
  /** Resolves with the exit code after the process and its output have ended. */
  readonly ended: Promise<number | null>
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
  return { child, kill: () => void child.kill('SIGKILL'), ended: exitCodeOf(child) }
}

async function exitCodeOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null]
  return code
}

/** Replaces the image's settings and its missing mail catcher: no server listens at this address. */
const INSTEAD = { SIDECAR_HOST: '127.0.0.1', SMTP_URL: 'smtp://127.0.0.1:9' }

/**
 * Starts the program in a container of that image. It shares the network and the temporary folders of the tests: their
 * servers are on 127.0.0.1, and only their user may read the folders. docker forwards SIGTERM. SIGKILL is a docker
 * command.
 */
function launchContainer(image: string, args: readonly string[], settings: Readonly<Record<string, string>>): Launched {
  const env = { ...INSTEAD, ...settings }
  const name = uniqueName('sidecar')
  const locked = ['--read-only', '--cap-drop', 'ALL', '--user', `${process.getuid!()}:${process.getgid!()}`]
  const seen = ['--volume', `${tmpdir()}:${tmpdir()}`]
  const received = Object.keys(env).flatMap((variable) => ['--env', variable])
  const how = ['--name', name, '--network', 'host', '--stop-timeout', '20', ...locked, ...seen, ...received]
  const child = spawn('docker', ['run', ...how, image, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // Not `run --rm`: podman's exit code would be 0.
  const remove = () => new Promise<void>((resolve) => execFile('docker', ['rm', '--force', name], () => resolve()))
  const ended = exitCodeOf(child).then(async (code) => {
    await remove()
    return code
  })
  return {
    child,
    kill: () => void execFile('docker', ['kill', name], (failure) => failure && child.kill('SIGKILL')),
    ended,
  }
}
