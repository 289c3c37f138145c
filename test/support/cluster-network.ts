/**
 * The network between the nodes of a cluster on one machine. A node with another password (cookie) for a peer is cut
 * off from it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { findErlangTool } from './erlang-tools.ts'

export interface NetworkOptions {
  /** The names of the nodes. */
  readonly names: readonly string[]
  /** The password that all nodes share. */
  readonly cookie: string
  readonly epmdPort: number
}

export interface Network {
  /** Cuts this node off from the others. */
  part(name: string): Promise<void>
  heal(): Promise<void>
}

export function createNetwork({ names, cookie, epmdPort }: NetworkOptions): Network {
  /** Runs this Erlang code in a node. */
  async function run(node: string, erlang: string): Promise<void> {
    const env = { ...process.env, ERL_EPMD_PORT: String(epmdPort) }
    const child = spawn(findErlangTool('erl_call')!, ['-n', node, '-c', cookie, '-e'], { env })
    const said = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    child.stdin.end(`${erlang}\n`)
    const [stdout, stderr] = await said
    if (!stdout.startsWith('{ok,')) throw new Error(`${node} refused the command: ${stdout}${stderr}`)
  }

  let isParted = false
  return {
    async part(name) {
      isParted = true
      const others = names.filter((other) => other !== name)
      for (const other of others) await run(name, `erlang:set_cookie('${other}', parted).`)
      for (const other of others) await run(name, `erlang:disconnect_node('${other}').`)
    },
    async heal() {
      if (!isParted) return
      for (const name of names) {
        for (const other of names.filter((other) => other !== name)) {
          await run(name, `erlang:set_cookie('${other}', '${cookie}'), net_kernel:connect_node('${other}').`)
        }
      }
      isParted = false
    },
  }
}
