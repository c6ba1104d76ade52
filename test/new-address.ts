let places = 0;

/** Each from a place of their own, so that tests do not throttle one another. */
export function newAddress(): string {
  places++;
  return `10.${(places >> 16) & 255}.${(places >> 8) & 255}.${places & 255}`;
}
