/** Reads things one after the other, as they have arrived, however long reading one takes. */
export class SequentialReader {
  #last: Promise<unknown> | null = null;

  /** Nothing that arrived before is waited for. */
  get isIdle(): boolean {
    return this.#last === null;
  }

  read<T>(read: () => T | Promise<T>): Promise<T> {
    const reading = (this.#last ?? Promise.resolve()).then(read);
    const last = reading.catch(() => {});
    this.#last = last;
    void last.then(() => {
      if (this.#last === last) this.#last = null;
    });
    return reading;
  }
}
