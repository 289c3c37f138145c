import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const FRAME = /(?:^|[\s(])((?:file:\/\/)?\/[^()]+?|[A-Za-z]:\\[^()]+?):(\d+):(\d+)\)?$/

/**
 * Where in the user's code an error comes from, as `handlers/orders.ts:12:3`, relative to the working directory; undefined
 * where that cannot be told.
 *
 * @param within frames of these files are ours
 */
export function placeIn(stack: string | undefined, within: readonly string[] = []): string | undefined {
  const ours = within.map(pathOf)
  for (const line of stack?.split('\n') ?? []) {
    const [, file = '', row, column] = FRAME.exec(line.trim()) ?? []
    if (file === '' || file.includes('/node_modules/')) continue
    const path = pathOf(file).replace(/\?.*$/, '')
    if (!ours.includes(path)) return `${relative(process.cwd(), path)}:${row}:${column}`
  }
  return undefined
}

const pathOf = (file: string): string => (file.startsWith('file://') ? fileURLToPath(file) : file)
