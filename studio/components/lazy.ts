import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { Notice } from "./notice.ts";

/** A component whose module is loaded when it is first shown. */
export function lazy<Props extends object>(load: () => Promise<FunctionComponent<Props>>) {
  let loaded: FunctionComponent<Props> | null = null;
  return function Lazy(props: Props) {
    const [isLoaded, setLoaded] = useState(loaded !== null);
    const [error, setError] = useState<Error | null>(null);
    useEffect(() => {
      if (loaded) return;
      load().then((component) => {
        loaded = component;
        setLoaded(true);
      }, setError);
    }, []);
    if (error) return html`<${Notice} kind="error" title=${texts.frame.loadFailed} error=${error} />`;
    return isLoaded ? html`<${loaded} ...${props} />` : null;
  };
}
