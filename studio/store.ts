import { useEffect, useState } from "preact/hooks";

/** A value that several components show. */
export type Store<Value> = {
  get(): Value;
  set(value: Value): void;
  /** Calls the listener after each change; returns the function that unsubscribes. */
  subscribe(listener: (value: Value) => void): () => void;
};

export function makeStore<Value>(initial: Value): Store<Value> {
  let current = initial;
  const listeners = new Set<(value: Value) => void>();
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Returns the value of a store; the component is rendered again when it changes. */
export function useStore<Value>(store: Store<Value>): Value {
  const [value, setValue] = useState(() => ({ of: store.get() }));
  useEffect(() => {
    setValue((shown) => (Object.is(shown.of, store.get()) ? shown : { of: store.get() }));
    return store.subscribe((changed) => setValue({ of: changed }));
  }, [store]);
  return value.of;
}
