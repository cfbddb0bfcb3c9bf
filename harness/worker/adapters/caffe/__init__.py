"""Caffe: a program that reads two files and trains by itself; BVLC's and Intel's."""
