/**
 * A part of a path, as it is between two slashes. `encodeURIComponent` leaves dots as they are, and everything that follows the
 * URL standard takes `.` and `..` out, also as `%2E`: `exchange` sends the path as it is.
 */
export const segment = (text: string): string =>
  text === '.' || text === '..' ? text.replaceAll('.', '%2E') : encodeURIComponent(text)
