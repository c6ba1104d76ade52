let places = 0;

/** Returns an address that no other client has, so that tests do not throttle one another. */
export function newAddress(): string {
  places++;
  return `10.${(places >> 16) & 255}.${(places >> 8) & 255}.${places & 255}`;
}
