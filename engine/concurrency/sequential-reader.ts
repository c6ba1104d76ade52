/** Processes items one after the other in order of arrival. */
export class SequentialReader {
  #last: Promise<unknown> | null = null;

  /** Whether no earlier item is pending. */
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
