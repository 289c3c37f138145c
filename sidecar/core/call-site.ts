import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const FRAME = /(?:^|[\s(])((?:file:\/\/)?\/[^()]+?|[A-Za-z]:\\[^()]+?):(\d+):(\d+)\)?$/

/** The folder of this program's own code. */
const OWN = fileURLToPath(new URL('..', import.meta.url))

/**
 * Finds the place in the user's code that an error comes from, such as `handlers/orders.ts:12:3`. The path is relative
 * to the working directory. Undefined if the stack does not show it.
 */
export function placeIn(stack: string | undefined): string | undefined {
  for (const line of stack?.split('\n') ?? []) {
    const [, file = '', row, column] = FRAME.exec(line.trim()) ?? []
    if (file === '' || file.includes('/node_modules/')) continue
    const path = pathOf(file).replace(/\?.*$/, '')
    if (!path.startsWith(OWN)) return `${relative(process.cwd(), path)}:${row}:${column}`
  }
  return undefined
}

const pathOf = (file: string): string => (file.startsWith('file://') ? fileURLToPath(file) : file)
