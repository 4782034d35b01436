/** Lets the browser save something as a file. */
export function saveFile(content: Blob, name: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // Some browsers read it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
