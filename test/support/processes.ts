import { existsSync, readdirSync, readFileSync } from 'node:fs'

const TABLE = '/proc'

/** The path of the process table, if this machine has one. */
export const findProcessTable = (): string | undefined => (existsSync(`${TABLE}/self/environ`) ? TABLE : undefined)

/** Reads one file of each process. Skips processes that end meanwhile or belong to another user. */
const each = <T>(file: string, read: (text: string, pid: string) => T[]): T[] =>
  readdirSync(TABLE).flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? read(readFileSync(`${TABLE}/${pid}/${file}`, 'utf8'), pid) : []
    } catch {
      return []
    }
  })

/**
 * The command lines of all processes with this text in their environment, which child processes inherit. Call
 * `needs('process table')` first.
 */
export const processesWith = (mark: string): string[] =>
  each('environ', (environment, pid) => {
    const command = readFileSync(`${TABLE}/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return environment.includes(mark) && command !== '' ? [command] : []
  })

/** The running child processes of a process. Call `needs('process table')` first. */
export const childrenOf = (parent: number): { readonly pid: number; readonly command: string }[] =>
  each('stat', (status, pid) => (new RegExp(`\\) [^Z] ${parent} `).test(status) ? [commandOf(pid)] : []))

/** Throws for an ended process. */
const commandOf = (pid: string) => ({
  pid: Number(pid),
  command: readFileSync(`${TABLE}/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
})

/** The processes that run the JavaScript of a CouchDB, below their starter. */
export const checkersOf = (server: number): { readonly pid: number }[] =>
  childrenOf(server)
    .flatMap(({ pid }) => childrenOf(pid))
    .filter(({ command }) => command.includes('couchjs'))

/** The ids of child processes whose end this process has not yet seen. */
export const unreaped = (): string[] =>
  each('stat', (status, pid) => (new RegExp(`\\) \\S ${process.pid} `).test(status) ? [pid] : []))
