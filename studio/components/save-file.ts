/** Lets the browser save a file under the name. */
export function saveFile(name: string, file: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // By then the browser has begun to save the file.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
