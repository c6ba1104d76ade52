const FIRST_ROOM = 64;

/** Positions in a text. Bare numbers, for a body may have a million of them. */
export class NumberList {
  #numbers = new Uint32Array(FIRST_ROOM);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get numbers(): Uint32Array {
    return this.#numbers.subarray(0, this.#length);
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) this.#grow();
    this.#numbers[this.#length++] = number;
  }

  #grow(): void {
    const more = new Uint32Array(2 * this.#numbers.length);
    more.set(this.#numbers);
    this.#numbers = more;
  }
}
