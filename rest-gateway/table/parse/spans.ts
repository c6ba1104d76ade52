const FIRST_ROOM = 64;

/** Where pieces of a text begin and end, by turns. Bare numbers, for a body may have a million of them. */
export class Spans {
  #numbers = new Uint32Array(FIRST_ROOM);
  #length = 0;

  get numbers(): Uint32Array {
    return this.#numbers.subarray(0, this.#length);
  }

  push(start: number, end: number): void {
    if (this.#length === this.#numbers.length) this.#grow();
    this.#numbers[this.#length++] = start;
    this.#numbers[this.#length++] = end;
  }

  #grow(): void {
    const more = new Uint32Array(2 * this.#numbers.length);
    more.set(this.#numbers);
    this.#numbers = more;
  }
}
