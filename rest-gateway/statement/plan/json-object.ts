/** Whether the JSON text is an object, judged by its first character; Postgres reads the rest. */
export function beginsAsObject(json: Buffer): boolean {
  const first = json.find((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);
  return first === 0x7b;
}
