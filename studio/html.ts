import htm from "htm";
import { type ComponentChildren, h, type VNode } from "preact";

/** For example html`<${Button} kind="primary" onClick=${save}>${texts.save}<//>` */
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;

export type Children = ComponentChildren;
