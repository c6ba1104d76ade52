/** First in, first out; unlike an array it does not move everybody when the first one leaves. */
export class Line<Item> {
  #items: Item[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  first(): Item | undefined {
    return this.#items[this.#head];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head++];
    if (this.#head === this.#items.length) this.#restart([]);
    else if (this.#head > 1_000) this.#restart(this.#items.slice(this.#head));
    return item;
  }

  remove(item: Item): void {
    this.#restart(this.#items.slice(this.#head).filter((other) => other !== item));
  }

  #restart(items: Item[]): void {
    this.#items = items;
    this.#head = 0;
  }
}
