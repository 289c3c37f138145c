import { existsSync, readdirSync, readFileSync } from 'node:fs'

const TABLE = '/proc'

/** Where the processes of this machine can be looked at, if they can. */
export const findProcessTable = (): string | undefined => (existsSync(`${TABLE}/self/environ`) ? TABLE : undefined)

/** One file of each process there is. One that ends meanwhile, or is somebody else's, is left out. */
const each = <T>(file: string, read: (text: string, pid: string) => T[]): T[] =>
  readdirSync(TABLE).flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? read(readFileSync(`${TABLE}/${pid}/${file}`, 'utf8'), pid) : []
    } catch {
      return []
    }
  })

/**
 * The command lines of all processes that were started with this text in their environment, which every process hands
 * down to those that it starts. Ask `needs('process table')` first.
 */
export const processesWith = (mark: string): string[] =>
  each('environ', (environment, pid) => {
    const command = readFileSync(`${TABLE}/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return environment.includes(mark) && command !== '' ? [command] : []
  })

/** What a process has started and is still running. Ask `needs('process table')` first. */
export const childrenOf = (parent: number): { readonly pid: number; readonly command: string }[] =>
  each('stat', (status, pid) => (new RegExp(`\\) [^Z] ${parent} `).test(status) ? [commandOf(pid)] : []))

/** Throws for one that has ended. */
const commandOf = (pid: string) => ({
  pid: Number(pid),
  command: readFileSync(`${TABLE}/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
})

/** The processes that run the JavaScript of a CouchDB, below the one that starts them. */
export const checkersOf = (server: number): { readonly pid: number }[] =>
  childrenOf(server)
    .flatMap(({ pid }) => childrenOf(pid))
    .filter(({ command }) => command.includes('couchjs'))

/** What this process has started and has not seen end, by their process ids. */
export const unreaped = (): string[] =>
  each('stat', (status, pid) => (new RegExp(`\\) \\S ${process.pid} `).test(status) ? [pid] : []))
