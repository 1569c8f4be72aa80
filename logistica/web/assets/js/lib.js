// The view library under one name, so that pages do not know what it is made of.
import { h, render, createContext, Component } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { render, createContext, Component };
export { useContext, useEffect, useLayoutEffect, useId, useMemo, useReducer, useRef, useState } from "../vendor/hooks.js";
