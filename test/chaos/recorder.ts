/** Effects as lines of a file, appended by a process that no mishap affects. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'

export interface Effect {
  readonly doc: string
  readonly key: string
  readonly worker: string
}

export interface Recorder {
  /** The URL to which a handler sends each effect: a POST of a line of JSON. */
  readonly url: string
  effects(): Promise<Effect[]>
  stop(): Promise<void>
}

const PROGRAM = `
  const { appendFileSync } = require('node:fs')
  const server = require('node:http').createServer((request, response) => {
    let line = ''
    request.setEncoding('utf8').on('data', (part) => (line += part))
    request.on('end', () => {
      appendFileSync(process.argv[1], line + '\\n')
      response.end()
    })
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
  process.stdin.resume().on('end', () => process.exit())`

export async function startRecorder(file: string): Promise<Recorder> {
  const child = spawn(process.execPath, ['-e', PROGRAM, file], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    url: `http://127.0.0.1:${port}`,
    async effects() {
      const text = await readFile(file, 'utf8').catch(() => '')
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Effect)
    },
    async stop() {
      const exited = once(child, 'exit')
      child.stdin.end()
      await exited
    },
  }
}
