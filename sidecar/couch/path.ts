/**
 * Encodes one segment of a path. `encodeURIComponent` leaves dots unchanged. URL parsers remove the segments `.` and
 * `..`, even as `%2E`, so `exchange` sends the path unparsed.
 */
export const segment = (text: string): string =>
  text === '.' || text === '..' ? text.replaceAll('.', '%2E') : encodeURIComponent(text)
